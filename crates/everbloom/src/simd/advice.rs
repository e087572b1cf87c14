//! Asking the operating system for large pages.

/// Smaller buffers gain nothing from 2-MiB pages.
const WORTH_ADVISING: usize = 4 << 20;

/// Asks for huge pages under `memory`; does nothing where that is not possible. Call it before the
/// memory is touched.
pub(crate) fn advise_huge_pages<T>(memory: &mut [T]) {
    if size_of_val(memory) < WORTH_ADVISING {
        return;
    }
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 4096;
        let start = memory.as_mut_ptr() as usize;
        let (first, end) = (start.next_multiple_of(PAGE), start + size_of_val(memory));
        let length = (end - first) / PAGE * PAGE;
        // SAFETY: the range lies within `memory`, which this call borrows exclusively, and
        // MADV_HUGEPAGE changes no contents. A refusal is no error: the pages then stay small.
        unsafe { libc::madvise(first as *mut libc::c_void, length, libc::MADV_HUGEPAGE) };
    }
}
