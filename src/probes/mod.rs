//! Probes look before the CA does, and report what was seen; `reconcile::visible` judges it.
