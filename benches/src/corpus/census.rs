//! The number of documents of each kind in a corpus.

/// Minimum number of documents, so that every kind is included.
pub const MIN_DATAFILES: usize = 200;

/// Number of documents that exist exactly once: settings, external services, pipelines.
const SINGLETON_COUNT: usize = 15;

/// The number of documents of each kind. Their sum, with the singletons, is the size of the corpus.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is the name of its kind, in the plural")]
pub struct Census {
    pub namespaces: usize,
    pub users: usize,
    pub roles: usize,
    pub permissions: usize,
    pub bots: usize,
    pub products: usize,
    pub environments: usize,
    pub apps: usize,
    pub escalations: usize,
    pub boards: usize,
    pub saas_files: usize,
    pub saas_targets: usize,
    pub clusters: usize,
    pub quotas: usize,
    pub limit_ranges: usize,
    pub shared: usize,
    pub accounts: usize,
    pub groups: usize,
    pub policies: usize,
    pub dependencies: usize,
    pub jenkins_configs: usize,
    pub integrations: usize,
    pub query_validations: usize,
    pub change_types: usize,
    /// Files in `resources/`.
    pub resources: usize,
}

impl Census {
    /// The mix for a corpus of `datafiles` documents; the remainder are users.
    ///
    /// # Panics
    ///
    /// If `datafiles` is less than [`MIN_DATAFILES`].
    pub fn of(datafiles: usize) -> Self {
        assert!(datafiles >= MIN_DATAFILES, "a corpus has at least {MIN_DATAFILES} datafiles");
        let share = |per_mille: usize| (datafiles * per_mille / 1000).max(2);
        let products = share(3);
        let mut census = Self {
            namespaces: datafiles / 4,
            users: 0,
            roles: share(110),
            permissions: share(100),
            bots: share(10),
            products,
            environments: products * 3,
            apps: share(75),
            escalations: share(20),
            boards: share(8),
            saas_files: share(72),
            saas_targets: share(33),
            clusters: share(5),
            quotas: share(6),
            limit_ranges: share(6),
            shared: share(12),
            accounts: share(6),
            groups: share(12),
            policies: share(12),
            dependencies: share(8),
            jenkins_configs: share(15),
            integrations: share(5).min(200),
            query_validations: share(3),
            change_types: share(1).min(8),
            resources: datafiles * 2 / 5,
        };
        census.users = datafiles - census.datafiles();
        census
    }

    /// The number of documents.
    pub fn datafiles(&self) -> usize {
        let Self {
            namespaces,
            users,
            roles,
            permissions,
            bots,
            products,
            environments,
            apps,
            escalations,
            boards,
            saas_files,
            saas_targets,
            clusters,
            quotas,
            limit_ranges,
            shared,
            accounts,
            groups,
            policies,
            dependencies,
            jenkins_configs,
            integrations,
            query_validations,
            change_types,
            resources: _,
        } = self;
        // Every account has a separate file with the location of its Terraform state.
        let states = accounts;
        namespaces
            + users
            + roles
            + permissions
            + bots
            + products
            + environments
            + apps
            + escalations
            + boards
            + saas_files
            + saas_targets
            + clusters
            + quotas
            + limit_ranges
            + shared
            + accounts
            + states
            + groups
            + policies
            + dependencies
            + jenkins_configs
            + integrations
            + query_validations
            + change_types
            + SINGLETON_COUNT
    }
}
