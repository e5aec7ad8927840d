//! x
mod fields;
mod schema;
pub(crate) mod tree;
mod yaml;
pub use self::tree::Position;
