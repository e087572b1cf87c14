//! Tells the sources whether Python has its own lock (`cfg(Py_GIL_DISABLED)`).

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
}
