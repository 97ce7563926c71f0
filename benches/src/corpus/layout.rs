//! The names and paths of all documents of a corpus. They are computed from the index, so that any document
//! can refer to any other.

use super::census::Census;
use super::prose;
use super::random::CorpusRng;

/// The phases of the environments of a product.
pub(super) const PHASES: [&str; 3] = ["integration", "stage", "production"];

/// The layout of a corpus: the number of documents of each kind, and the seed.
pub(super) struct CorpusLayout {
    pub(super) census: Census,
    seed: u64,
}

impl CorpusLayout {
    pub(super) fn new(census: Census, seed: u64) -> Self {
        Self { census, seed }
    }

    /// The random numbers of one document.
    pub(super) fn random(&self, kind: &str, index: usize) -> CorpusRng {
        CorpusRng::new(self.seed, kind, index)
    }

    pub(super) fn product_path(index: usize) -> String {
        format!("/products/product-{index}/product.yml")
    }

    /// The product and the phase of an environment.
    pub(super) fn environment_parts(&self, index: usize) -> (usize, usize) {
        (index % self.census.products, index / self.census.products)
    }

    pub(super) fn environment_name(&self, index: usize) -> String {
        let (product, phase) = self.environment_parts(index);
        format!("product-{product}-{}", PHASES[phase])
    }

    pub(super) fn environment_path(&self, index: usize) -> String {
        let (product, phase) = self.environment_parts(index);
        format!("/products/product-{product}/environments/{}.yml", PHASES[phase])
    }

    pub(super) fn cluster_name(index: usize) -> String {
        format!("cluster-{index:03}")
    }

    pub(super) fn cluster_path(index: usize) -> String {
        format!("/openshift/{0}/{0}.yml", Self::cluster_name(index))
    }

    pub(super) fn app_name(index: usize) -> String {
        prose::name(index)
    }

    pub(super) fn app_path(index: usize) -> String {
        format!("/services/{}/app.yml", Self::app_name(index))
    }

    /// The app that a namespace belongs to.
    pub(super) fn app_of(&self, namespace: usize) -> usize {
        namespace % self.census.apps
    }

    /// The namespaces of an app.
    pub(super) fn namespaces_of(&self, app: usize) -> Vec<usize> {
        (app..self.census.namespaces).step_by(self.census.apps).collect()
    }

    /// The environment of a namespace: the namespaces of an app cycle through the phases of its product.
    pub(super) fn environment_of(&self, namespace: usize) -> usize {
        let product = self.app_of(namespace) % self.census.products;
        let phase = namespace / self.census.apps % PHASES.len();
        product + phase * self.census.products
    }

    pub(super) fn namespace_name(&self, index: usize) -> String {
        let (_, phase) = self.environment_parts(self.environment_of(index));
        format!("{}-{}-{index}", Self::app_name(self.app_of(index)), PHASES[phase])
    }

    pub(super) fn namespace_path(&self, index: usize) -> String {
        let app = Self::app_name(self.app_of(index));
        format!("/services/{app}/namespaces/{}.yml", self.namespace_name(index))
    }

    pub(super) fn role_path(index: usize) -> String {
        format!("/access/roles/{}.yml", Self::role_name(index))
    }

    pub(super) fn role_name(index: usize) -> String {
        format!("{}-role", prose::name(index))
    }

    pub(super) fn permission_path(index: usize) -> String {
        format!("/access/permissions/permission-{index}.yml")
    }

    pub(super) fn user_path(index: usize) -> String {
        format!("/access/users/user-{index:05}.yml")
    }

    pub(super) fn account_name(index: usize) -> String {
        format!("account-{index:03}")
    }

    pub(super) fn account_path(index: usize) -> String {
        format!("/aws/{}/account.yml", Self::account_name(index))
    }

    pub(super) fn group_path(&self, index: usize) -> String {
        format!("/aws/{}/groups/group-{index}.yml", Self::account_name(index % self.census.accounts))
    }

    pub(super) fn policy_path(&self, index: usize) -> String {
        format!("/aws/{}/policies/policy-{index}.yml", Self::account_name(index % self.census.accounts))
    }

    pub(super) fn escalation_path(index: usize) -> String {
        format!("/escalation/escalation-{index}.yml")
    }

    pub(super) fn saas_path(&self, index: usize) -> String {
        let app = Self::app_name(index % self.census.apps);
        format!("/services/{app}/saas/saas-{index}.yml")
    }

    /// The path of a target with a separate file; it belongs to the saas file with the same index.
    pub(super) fn target_path(&self, index: usize) -> String {
        let app = Self::app_name(index % self.census.saas_files % self.census.apps);
        format!("/services/{app}/saas/targets/target-{index}.yml")
    }
}
