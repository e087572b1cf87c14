//! Every example runs, and its own assertions hold.

#[path = "../examples/endless_stream.rs"]
mod endless_stream;
#[path = "../examples/importance.rs"]
mod importance;
#[path = "../examples/query_log.rs"]
mod query_log;
#[path = "../examples/save_load_merge.rs"]
mod save_load_merge;
#[path = "../examples/set.rs"]
mod set;
#[path = "../examples/threads.rs"]
mod threads;
#[path = "../examples/window.rs"]
mod window;

macro_rules! run {
    ($($name:ident)*) => {
        mod examples {
            $(#[test]
            fn $name() {
                crate::$name::main().expect(stringify!($name));
            })*

            #[test]
            fn none_is_left_out() {
                let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
                let files = std::fs::read_dir(folder).expect("the examples").count();
                assert_eq!(files, [$(stringify!($name)),*].len());
            }
        }
    };
}
run! { endless_stream importance query_log save_load_merge set threads window }
