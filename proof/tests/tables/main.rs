//! Tables that are compared with what is so: mutants, good and bad objects, the operator's rights.

mod mutants;
mod object_table;
mod rbac;
