//! The allocator: the server's own, so that its `INFO memory` and its `maxmemory` know what filters take.
//!
//! The server's functions know no alignment: what needs more than 8 bytes of it gets more room than it asks for, and
//! the address that the server gave is kept before what is handed out. Large requests may be refused, which becomes an
//! error reply; for small ones the server ends itself, as it does for its own.
//!
//! Without a server, as in unit tests, it is the system's. Nothing is allocated before a server's functions are known, so
//! that nothing is given back to the wrong one.

use super::raw::{Api, loaded};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;

#[global_allocator]
static SERVER: Server = Server;

struct Server;

/// What every allocator of a server guarantees: with some C libraries it keeps the size in eight bytes before the block.
const ALIGNED: usize = 8;

/// From here on a refusal is an answer. A server has this much for what it does with every command.
const LARGE: usize = 64 << 10;

// SAFETY: blocks come from the server's allocator, or, with no server, from the system's, and go back to the one that
// they are from, since the table of functions is set once and before anything is allocated.
unsafe impl GlobalAlloc for Server {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match loaded() {
            // SAFETY: the caller's promise.
            None => unsafe { System.alloc(layout) },
            Some(api) => aligned(layout, |bytes| request(api, bytes)),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match loaded() {
            // SAFETY: the caller's promise.
            None => unsafe { System.alloc_zeroed(layout) },
            Some(api) => aligned(layout, |bytes| request_zeroed(api, bytes)),
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let Some(api) = loaded() else {
            // SAFETY: the caller's promise.
            return unsafe { System.dealloc(block, layout) };
        };
        // SAFETY: the block is from `aligned`, which kept the server's address where `original` reads it.
        unsafe { (api.Free)(original(block, layout)) };
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        let Some(api) = loaded() else {
            // SAFETY: the caller's promise.
            return unsafe { System.realloc(block, layout, bytes) };
        };
        match api.TryRealloc {
            // SAFETY: the block is as the server gave it.
            _ if layout.align() <= ALIGNED && bytes < LARGE => unsafe { (api.Realloc)(block.cast(), bytes) }.cast(),
            // SAFETY: as above.
            Some(try_realloc) if layout.align() <= ALIGNED => unsafe { try_realloc(block.cast(), bytes) }.cast(),
            // SAFETY: the caller's promise: the new size is valid for the alignment.
            _ => unsafe { self.moved(block, layout, bytes) },
        }
    }
}

impl Server {
    /// Another block with the same contents, as far as both go.
    ///
    /// # Safety
    /// As for `realloc`.
    unsafe fn moved(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(bytes, layout.align()));
            if !new.is_null() {
                std::ptr::copy_nonoverlapping(block, new, layout.size().min(bytes));
                self.dealloc(block, layout);
            }
            new
        }
    }
}

fn request(api: &Api, bytes: usize) -> *mut c_void {
    match api.TryAlloc {
        // SAFETY: any size may be asked for.
        Some(try_alloc) if bytes >= LARGE => unsafe { try_alloc(bytes) },
        // SAFETY: as above.
        _ => unsafe { (api.Alloc)(bytes) },
    }
}

fn request_zeroed(api: &Api, bytes: usize) -> *mut c_void {
    // SAFETY: any size may be asked for, and what is given back is not used.
    unsafe {
        match (api.TryCalloc, api.TryAlloc) {
            (Some(try_calloc), _) if bytes >= LARGE => try_calloc(1, bytes),
            // Older servers have no such function that may refuse. Whether they would is asked first; zeroing the block
            // by hand would touch every page of it, a tenth of a second for 64 MiB.
            (None, Some(try_alloc)) if bytes >= LARGE => {
                let block = try_alloc(bytes);
                if block.is_null() {
                    return block;
                }
                (api.Free)(block);
                (api.Calloc)(1, bytes)
            }
            _ => (api.Calloc)(1, bytes),
        }
    }
}

/// A block of this layout out of one that `ask` gets, larger where the alignment needs it.
fn aligned(layout: Layout, ask: impl FnOnce(usize) -> *mut c_void) -> *mut u8 {
    if layout.align() <= ALIGNED {
        return ask(layout.size()).cast();
    }
    // The address is a multiple of 8, so that at least one word lies before the first aligned place behind it.
    let Some(bytes) = layout.size().checked_add(layout.align()) else { return std::ptr::null_mut() };
    let block: *mut u8 = ask(bytes).cast();
    if block.is_null() {
        return block;
    }
    let offset = layout.align() - block as usize % layout.align();
    // SAFETY: the offset is at least one word, at most the alignment, and both were asked for.
    unsafe {
        let place = block.add(offset);
        place.cast::<*mut u8>().sub(1).write(block);
        place
    }
}

/// The server's address of a block from [`aligned`].
///
/// # Safety
/// The block is from there, with this layout.
unsafe fn original(block: *mut u8, layout: Layout) -> *mut c_void {
    if layout.align() <= ALIGNED {
        return block.cast();
    }
    // SAFETY: `aligned` wrote it there.
    unsafe { block.cast::<*mut u8>().sub(1).read() }.cast()
}
