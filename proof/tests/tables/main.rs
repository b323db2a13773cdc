//! Tables that are compared with the code: mutants, good and bad objects, the operator's rights.

mod mutants;
mod object_table;
mod rbac;
