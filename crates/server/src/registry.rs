//! The bundle registry: tracks the latest bundle, the TTL of each loaded bundle, and leases. Pure: the time
//! is an argument, in milliseconds since 1970.
//!
//! **Invariant:** a bundle stays loaded while it is the latest, has a lease, or was requested within its TTL.

use std::collections::BTreeMap;
use std::sync::Arc;

use qontract_bundle::Sha256;
use qontract_graphql::Engine;

/// Maximum number of leases.
pub const MAX_LEASES: usize = 256;
/// Maximum duration of a lease, in seconds.
pub const MAX_LEASE_SECONDS: u64 = 3600;

/// The loaded bundles.
pub struct BundleRegistry {
    entries: BTreeMap<Sha256, RegistryEntry>,
    latest: Option<Sha256>,
    leases: BTreeMap<u64, Lease>,
    /// The time in milliseconds for which a bundle stays loaded after its last request.
    ttl: u64,
    /// Maximum number of loaded bundles from the store.
    max_fetched: usize,
}

struct RegistryEntry {
    engine: Arc<Engine>,
    expires: u64,
    is_fetched: bool,
}

/// A lease, which keeps a bundle loaded until it expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The sha of the bundle.
    pub sha: Sha256,
    /// The time at which the lease expires, in milliseconds since 1970.
    pub expires: u64,
}

/// A loaded bundle, as listed by `/cache`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachedBundle {
    /// The sha of the bundle.
    pub sha: Sha256,
    /// The time at which the TTL of the bundle ends, in milliseconds since 1970.
    pub expires: u64,
}

/// The limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegistryFull {
    /// The maximum number of bundles is loaded, and none of them may be dropped.
    Bundles,
    /// The maximum number of leases is reached.
    Leases,
}

impl BundleRegistry {
    /// Creates an empty registry.
    pub fn new(ttl: u64, max_fetched: usize) -> Self {
        Self { entries: BTreeMap::new(), latest: None, leases: BTreeMap::new(), ttl, max_fetched }
    }

    /// The latest bundle.
    pub fn latest(&self) -> Option<&Arc<Engine>> {
        self.get(self.latest?)
    }

    /// The bundle with this sha, if it is loaded. Its TTL does not restart.
    pub fn get(&self, sha: Sha256) -> Option<&Arc<Engine>> {
        self.entries.get(&sha).map(|held| &held.engine)
    }

    /// Restarts the TTL of a bundle that was requested.
    pub fn touch(&mut self, sha: Sha256, now: u64) {
        let expires = now.saturating_add(self.ttl);
        if let Some(held) = self.entries.get_mut(&sha) {
            held.expires = expires;
        }
    }

    /// Restarts the TTL of a bundle that a request uses and inserts the bundle again if it was dropped since the
    /// request found it.
    pub fn touch_or_insert(&mut self, engine: &Arc<Engine>, now: u64) {
        let expires = now.saturating_add(self.ttl);
        let held = self.entries.entry(engine.bundle().sha()).or_insert_with(|| RegistryEntry {
            engine: Arc::clone(engine),
            expires,
            is_fetched: true,
        });
        held.expires = expires;
    }

    /// Makes the bundle with this sha the latest if it is loaded. Returns whether it is loaded.
    pub fn make_latest(&mut self, sha: Sha256, now: u64) -> bool {
        let Some(held) = self.entries.get_mut(&sha) else { return false };
        held.is_fetched = false;
        self.touch(sha, now);
        self.set_latest(sha, now);
        true
    }

    /// Sets the latest bundle. The TTL of the previous latest bundle restarts, so that clients that have just read
    /// its sha can still query it.
    fn set_latest(&mut self, sha: Sha256, now: u64) {
        if let Some(before) = self.latest.replace(sha) {
            self.touch(before, now);
        }
    }

    /// Adds a bundle as the latest. Returns the dropped bundles to the caller, because freeing them takes time.
    pub fn put_latest(&mut self, engine: Arc<Engine>, now: u64) -> Vec<Arc<Engine>> {
        let dropped = self.sweep(now);
        let sha = engine.bundle().sha();
        self.entries
            .insert(sha, RegistryEntry { engine, expires: now.saturating_add(self.ttl), is_fetched: false });
        self.set_latest(sha, now);
        dropped
    }

    /// Adds a bundle that is not the latest. Returns the dropped bundles.
    pub fn put_fetched(&mut self, engine: Arc<Engine>, now: u64) -> Result<Vec<Arc<Engine>>, RegistryFull> {
        let sha = engine.bundle().sha();
        // Another request has already added the bundle.
        if self.entries.contains_key(&sha) {
            self.touch(sha, now);
            return Ok(Vec::new());
        }
        if !self.has_room(now) {
            return Err(RegistryFull::Bundles);
        }
        let dropped = self.sweep(now);
        self.entries
            .insert(sha, RegistryEntry { engine, expires: now.saturating_add(self.ttl), is_fetched: true });
        Ok(dropped)
    }

    /// Whether one more bundle from the store can be added after expired bundles are dropped.
    pub fn has_room(&self, now: u64) -> bool {
        let stays =
            |(sha, held): &(&Sha256, &RegistryEntry)| held.is_fetched && !self.is_expired(**sha, held, now);
        self.entries.iter().filter(stays).count() < self.max_fetched
    }

    /// Drops a bundle that is not the latest, even if it is in use.
    pub fn remove(&mut self, sha: Sha256) -> Option<Arc<Engine>> {
        if self.latest == Some(sha) {
            return None;
        }
        self.entries.remove(&sha).map(|held| held.engine)
    }

    /// The loaded bundles, sorted by sha.
    pub fn entries(&self) -> Vec<CachedBundle> {
        self.entries.iter().map(|(sha, held)| CachedBundle { sha: *sha, expires: held.expires }).collect()
    }

    /// Number of leases that have not expired.
    pub fn leases(&self, now: u64) -> usize {
        self.leases.values().filter(|lease| lease.expires > now).count()
    }

    /// Takes a lease on a bundle for a number of seconds.
    pub fn lease(
        &mut self,
        id: u64,
        engine: &Arc<Engine>,
        seconds: u64,
        now: u64,
    ) -> Result<Lease, RegistryFull> {
        self.leases.retain(|_, lease| lease.expires > now);
        if self.leases.len() >= MAX_LEASES {
            return Err(RegistryFull::Leases);
        }
        self.touch_or_insert(engine, now);
        let lease = Lease { sha: engine.bundle().sha(), expires: until(seconds, now) };
        self.leases.insert(id, lease.clone());
        Ok(lease)
    }

    /// Renews a lease that has not expired, so that it ends `seconds` after `now`.
    pub fn renew(&mut self, id: u64, seconds: u64, now: u64) -> Option<Lease> {
        let lease = self.leases.get_mut(&id).filter(|lease| lease.expires > now)?;
        lease.expires = until(seconds, now);
        Some(lease.clone())
    }

    /// Ends a lease. Returns whether the lease existed and had not expired.
    pub fn release(&mut self, id: u64, now: u64) -> bool {
        self.leases.remove(&id).is_some_and(|lease| lease.expires > now)
    }

    fn is_expired(&self, sha: Sha256, entry: &RegistryEntry, now: u64) -> bool {
        let is_leased = || self.leases.values().any(|lease| lease.sha == sha && lease.expires > now);
        entry.expires <= now && self.latest != Some(sha) && !is_leased()
    }

    fn sweep(&mut self, now: u64) -> Vec<Arc<Engine>> {
        self.leases.retain(|_, lease| lease.expires > now);
        let expired: Vec<Sha256> = self
            .entries
            .iter()
            .filter(|(sha, entry)| self.is_expired(**sha, entry, now))
            .map(|(sha, _)| *sha)
            .collect();
        expired.into_iter().filter_map(|sha| self.entries.remove(&sha)).map(|entry| entry.engine).collect()
    }
}

fn until(seconds: u64, now: u64) -> u64 {
    now + seconds.min(MAX_LEASE_SECONDS) * 1000
}

#[cfg(test)]
mod tests {
    use qontract_bundle::{Pool, load};

    use super::*;

    /// Creates a bundle that differs from others only by its commit.
    fn engine(commit: &str) -> Arc<Engine> {
        let text = format!(
            r#"{{"git_commit": "{commit}", "git_commit_timestamp": "1", "schemas": {{}}, "resources": {{}}, "data": {{}},
            "graphql": [{{"name": "Query", "fields": [{{"name": "x", "type": "string"}}]}}]}}"#
        );
        Arc::new(Engine::new(Arc::new(load(text.as_bytes(), &Pool::default()).unwrap())).unwrap())
    }

    fn commits(engines: &[Arc<Engine>]) -> Vec<&str> {
        engines.iter().map(|engine| engine.bundle().stamp().commit.as_str()).collect()
    }

    fn sha(engine: &Arc<Engine>) -> Sha256 {
        engine.bundle().sha()
    }

    #[test]
    fn expired_bundles_are_dropped_when_another_one_is_loaded() {
        let (mut registry, [a, b, c]) = (BundleRegistry::new(100, 8), ["a", "b", "c"].map(engine));
        assert!(registry.latest().is_none());
        assert!(registry.put_latest(Arc::clone(&a), 0).is_empty());
        // The previous latest bundle stays loaded, even if it is old.
        assert!(registry.put_latest(Arc::clone(&b), 1000).is_empty());
        assert!(registry.get(sha(&a)).is_some());
        // After that, the TTL of the previous bundle restarts, for clients that have just read its sha.
        assert_eq!(commits(&registry.put_latest(Arc::clone(&c), 1100)), ["a"]);
        assert_eq!(registry.latest().map(sha), Some(sha(&c)));
        assert!(registry.get(sha(&b)).is_some());
    }

    #[test]
    fn a_request_restarts_the_ttl_of_a_bundle() {
        let (mut registry, [a, b, c]) = (BundleRegistry::new(100, 8), ["a", "b", "c"].map(engine));
        registry.put_latest(Arc::clone(&a), 0);
        registry.put_latest(b, 50);
        registry.touch(sha(&a), 90);
        assert_eq!(registry.entries().iter().find(|entry| entry.sha == sha(&a)).unwrap().expires, 190);
        assert!(registry.put_latest(c, 149).is_empty());
        assert!(registry.get(sha(&a)).is_some());
    }

    #[test]
    fn a_roll_back_makes_the_old_one_the_latest() {
        let (mut registry, [a, b]) = (BundleRegistry::new(100, 8), ["a", "b"].map(engine));
        assert!(!registry.make_latest(sha(&a), 0));
        registry.put_latest(Arc::clone(&a), 0);
        registry.put_latest(b, 1);
        assert!(registry.make_latest(sha(&a), 2));
        assert_eq!(registry.latest().map(sha), Some(sha(&a)));
    }

    #[test]
    fn a_leased_bundle_stays_loaded_until_the_lease_ends() {
        let (mut registry, [a, b, c, d]) = (BundleRegistry::new(100, 8), ["a", "b", "c", "d"].map(engine));
        registry.put_latest(Arc::clone(&a), 0);
        let lease = registry.lease(7, &a, 10, 0).unwrap();
        assert_eq!(lease, Lease { sha: sha(&a), expires: 10_000 });
        registry.put_latest(b, 0);
        assert!(registry.put_latest(c, 9_999).is_empty() && registry.get(sha(&a)).is_some());
        assert_eq!(
            registry.renew(7, MAX_LEASE_SECONDS * 2, 9_999).unwrap().expires,
            9_999 + MAX_LEASE_SECONDS * 1000
        );
        assert!(registry.release(7, 9_999) && !registry.release(7, 9_999));
        assert_eq!(registry.renew(7, 1, 9_999), None);
        assert!(commits(&registry.put_latest(d, 20_000)).contains(&"a"));
    }

    #[test]
    fn leases_are_bounded_and_expired_ones_do_not_count() {
        let (mut registry, a) = (BundleRegistry::new(100, 8), engine("a"));
        for id in 0..MAX_LEASES as u64 {
            registry.lease(id, &a, 10, 0).unwrap();
        }
        assert_eq!(registry.lease(1000, &a, 10, 0), Err(RegistryFull::Leases));
        assert!(registry.lease(1000, &a, 10, 10_000).is_ok());
        assert_eq!(registry.leases(10_000), 1);
    }

    #[test]
    fn bundles_from_the_store_are_bounded() {
        let (mut registry, [a, b, c]) = (BundleRegistry::new(100, 1), ["a", "b", "c"].map(engine));
        registry.put_latest(a, 0);
        assert!(registry.put_fetched(Arc::clone(&b), 0).unwrap().is_empty());
        assert!(!registry.has_room(99));
        assert_eq!(registry.put_fetched(Arc::clone(&c), 99).err(), Some(RegistryFull::Bundles));
        assert!(registry.has_room(100));
        assert_eq!(commits(&registry.put_fetched(c, 100).unwrap()), ["b"]);
    }
}
