//! Memory that is zero and not touched until it is used.

use super::advice::{WORTH_ADVISING, advise_huge_pages};
use std::alloc::{Layout, alloc_zeroed, dealloc, realloc};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// So many zeroed elements, at the alignment of their type.
///
/// The system gives large blocks as pages that are zero already and take no memory before they are written, but only to
/// who asks for no alignment of his own; a `Vec` of lines would be zeroed by hand. So one element more is asked for, and
/// the first is the first that is aligned.
pub struct Zeroed<T> {
    /// What the system gave.
    block: NonNull<u8>,
    layout: Layout,
    /// Bytes of the block before the first element.
    offset: usize,
    length: usize,
    elements: PhantomData<T>,
}

// SAFETY: it owns its elements, as a Vec does.
unsafe impl<T: Send> Send for Zeroed<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Zeroed<T> {}

impl<T: bytemuck::Pod> Zeroed<T> {
    /// So many zeroes, or nothing if there is no room for them.
    pub fn new(length: usize) -> Option<Self> {
        let layout = Self::layout(length)?;
        // SAFETY: the layout is not empty: it has room for an element more than is asked for.
        let block = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let offset = block.as_ptr().align_offset(align_of::<T>());
        // No such offset is known only where programs are interpreted at compile time.
        debug_assert!(offset < size_of::<T>());
        Some(Zeroed { block, layout, offset, length, elements: PhantomData })
    }

    fn layout(length: usize) -> Option<Layout> {
        const { assert!(size_of::<T>() >= align_of::<T>()) };
        let bytes = length.checked_add(1)?.checked_mul(size_of::<T>())?;
        // No more than what every allocator gives anyway.
        Layout::from_size_align(bytes, align_of::<T>().min(align_of::<u64>())).ok()
    }

    /// Makes it longer, with zeroes behind what it has; false, and nothing changed, if there is no room. Where the system
    /// can, the block stays where it is.
    pub fn grow(&mut self, length: usize) -> bool {
        let wanted = Self::layout(length).and_then(whole_huge_pages).filter(|_| length > self.length);
        let Some(layout) = wanted else { return length <= self.length };
        // SAFETY: the block was allocated with this layout, and the new size is a valid one of the same alignment.
        let Some(block) = NonNull::new(unsafe { realloc(self.block.as_ptr(), self.layout, layout.size()) }) else {
            return false;
        };
        let (old_offset, old_length) = (self.offset, self.length);
        let offset = block.as_ptr().align_offset(align_of::<T>());
        // SAFETY: the block is ours alone; bytes that may not have been written are not read.
        let bytes = unsafe { std::slice::from_raw_parts_mut(block.as_ptr().cast(), layout.size()) };
        advise_huge_pages::<MaybeUninit<u8>>(bytes);
        // SAFETY: both ranges lie in the block, which has an element more than `length`; they may overlap. What lies
        // behind is written before anybody can read it.
        unsafe {
            let (bytes, old) = (block.as_ptr(), old_length * size_of::<T>());
            if offset != old_offset {
                std::ptr::copy(bytes.add(old_offset), bytes.add(offset), old);
            }
            std::ptr::write_bytes(bytes.add(offset + old), 0, length * size_of::<T>() - old);
        }
        (self.block, self.layout, self.offset, self.length) = (block, layout, offset, length);
        true
    }
}

/// A layout that is as large or a little larger, so that with what the allocator puts before it a large block takes whole
/// huge pages. Linux aligns such a block, and can then move it without cutting its huge pages into small ones: a block
/// that grew to 34 MiB had 3 of them instead of 16. What is not written takes no memory.
fn whole_huge_pages(layout: Layout) -> Option<Layout> {
    const PAGE: usize = 4 << 10;
    const HUGE_PAGE: usize = 2 << 20;
    if layout.size() < WORTH_ADVISING {
        return Some(layout);
    }
    let bytes = layout.size().checked_add(PAGE)?.checked_next_multiple_of(HUGE_PAGE)? - PAGE;
    Layout::from_size_align(bytes, layout.align()).ok()
}

impl<T> Deref for Zeroed<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the elements lie in the block, aligned, and were zeroed, which is a value of every Pod.
        unsafe { std::slice::from_raw_parts(self.block.as_ptr().add(self.offset).cast(), self.length) }
    }
}

impl<T> DerefMut for Zeroed<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and nobody else has the block.
        unsafe { std::slice::from_raw_parts_mut(self.block.as_ptr().add(self.offset).cast(), self.length) }
    }
}

impl<T> Drop for Zeroed<T> {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout.
        unsafe { dealloc(self.block.as_ptr(), self.layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[derive(Clone, Copy, PartialEq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
    #[repr(C, align(64))]
    struct Line([u64; 8]);

    #[test]
    fn elements_are_aligned_zero_and_kept_while_there_come_more() {
        let mut memory = Zeroed::<Line>::new(0).expect("nothing");
        assert!(memory.is_empty());
        for length in [1usize, 2, 3, 1000, 1001, 100_000] {
            let before = memory.len();
            assert!(memory.grow(length));
            assert_eq!(memory.as_ptr() as usize % 64, 0);
            assert!(memory[..before].iter().enumerate().all(|(index, line)| line.0 == [index as u64; 8]));
            assert!(memory[before..].iter().all(|line| line.0 == [0; 8]));
            memory.iter_mut().enumerate().for_each(|(index, line)| line.0 = [index as u64; 8]);
        }
        assert!(memory.grow(5) && memory.len() == 100_000, "it never gets shorter");
        assert!(!memory.grow(1 << 54) && !memory.grow(usize::MAX) && memory.len() == 100_000);
        // What nobody looks at need not be allocated, says the optimiser.
        let refused = |length| black_box(Zeroed::<Line>::new(black_box(length))).is_none();
        assert!(refused(1 << 54) && refused(usize::MAX));
    }
}
