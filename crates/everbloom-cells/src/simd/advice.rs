//! Asking the operating system for large pages.

/// Smaller buffers gain nothing from 2-MiB pages.
pub(super) const WORTH_ADVISING: usize = 4 << 20;

/// Asks for huge pages under `memory`; does nothing where that is not possible. Call it before the
/// memory is touched.
pub fn advise_huge_pages<T>(memory: &mut [T]) {
    if size_of_val(memory) < WORTH_ADVISING {
        return;
    }
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 4096;
        let start = memory.as_mut_ptr() as usize;
        // To the ends of the first and the last page. A block that was mapped by itself is one to the system only as long as
        // all of its pages are treated alike, and only such a block can be moved without being copied.
        let (first, end) = (start / PAGE * PAGE, (start + size_of_val(memory)).next_multiple_of(PAGE));
        let length = end - first;
        // SAFETY: MADV_HUGEPAGE changes no contents, neither those of `memory` nor what else lies on its first and last
        // page. A refusal is no error: the pages then stay small.
        unsafe { libc::madvise(first as *mut libc::c_void, length, libc::MADV_HUGEPAGE) };
    }
}
