//! Probes from inside a cluster: the flag, and the probe that the flag makes.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::context::failure::Failure;
use crate::fetch::Fetcher;
use crate::lead::Claim;
use crate::probes::Probe;
use crate::probes::cluster::{CombinedProbe, PodProbe};
use crate::probes::http::HttpProbe;
use crate::reconcile::challenge::Readiness;
use crate::reconcile::http01_visible;
use crate::store::cluster::ClusterStore;

/// Flag of probe Pods.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Looking at names")]
pub struct ProbePodArgs {
    /// Also look from inside the cluster: from a Pod of this image, whose entry point is this program
    ///
    /// The Pod makes one request, prints the result and is removed. The Pod is made in the challenge's namespace; while an
    /// order is under way, only if an answer cannot be seen from here. The Pod's result is shown beside the result from
    /// here and decides nothing: the CA looks from outside.
    #[arg(long, hide_short_help = true, value_name = "IMAGE")]
    pub probe_image: Option<String>,
}

impl ProbePodArgs {
    /// Checks that the flag can be followed, before anything is done.
    ///
    /// # Errors
    /// Fails when there is no cluster to look from.
    pub fn check(&self, context: &Context) -> Result<(), Failure> {
        self.image(context).map(drop)
    }

    /// Returns the image, and the cluster to look from; `None` without the flag.
    fn image<'a>(
        &'a self,
        context: &'a Context,
    ) -> Result<Option<(&'a str, &'a ClusterStore)>, Failure> {
        let Some(image) = &self.probe_image else { return Ok(None) };
        let Some(cluster) = context.cluster() else {
            let message = "cannot look from a Pod: --probe-image needs a cluster";
            return Err(Failure::usage(message).hint("omit --probe-image, or omit --local"));
        };
        Ok(Some((image, cluster)))
    }

    /// Prints that the flag has no effect if another process drives.
    pub fn say_whether_it_counts(&self, claim: &Claim, context: &Context) {
        if let (Some(_), Claim::Watches(_)) = (&self.probe_image, claim) {
            let driver = claim.driver();
            context
                .talk()
                .line(&format!("--probe-image is not used: the self-checks are those of {driver}"));
        }
    }

    /// Returns the probe from inside the cluster, which works until `stop`; its Pods belong to the Challenges if these are
    /// in the cluster (`is_owned`).
    ///
    /// # Errors
    /// Fails when there is no cluster.
    pub fn inside(
        &self,
        is_owned: bool,
        stop: &CancellationToken,
        context: &Context,
    ) -> Result<Option<PodProbe>, Failure> {
        let image = self.image(context)?;
        Ok(image.map(|(image, cluster)| {
            let (cluster, image) = (cluster.clone(), image.to_owned());
            PodProbe { cluster, image, is_owned, stop: stop.clone() }
        }))
    }

    /// Returns the probe of the self-check, which works until `stop`.
    ///
    /// # Errors
    /// Fails when there is no cluster to look from.
    pub fn probe(
        &self,
        fetcher: Fetcher,
        is_owned: bool,
        stop: &CancellationToken,
        context: &Context,
    ) -> Result<Arc<dyn Probe>, Failure> {
        let here = HttpProbe { fetcher };
        let is_seen =
            |answer: &_, seen: &[_]| http01_visible::judge(answer, seen) == Readiness::Ready;
        Ok(match self.inside(is_owned, stop, context)? {
            Some(inside) => Arc::new(CombinedProbe::new(here, inside, is_seen)),
            None => Arc::new(here),
        })
    }
}
