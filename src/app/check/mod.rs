//! `certificate check`: which certificates have to be replaced now, and why. They are found (`places`), their CAs, the lists of
//! what was revoked and CAA records are asked (`surveyor`), what was found is judged by rules without I/O
//! (`diagnosis::replacement`), and where that is wanted those of the store are replaced (`replacing`), some in each hour.

pub(crate) mod caa;
pub mod places;
pub mod replacing;
pub mod surveyor;
