//! A cache with a cost budget and two generations.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use parking_lot::{Mutex, MutexGuard};

/// A generational cache with a cost budget. Reading an entry moves it into the young generation. When the
/// young generation is full, it replaces the old one, which evicts the entries that were not read since the
/// last replacement.
#[derive(Debug)]
pub struct Cache<K, V> {
    generations: Mutex<[Generation<K, V>; 2]>,
    /// Maximum cost of one generation.
    max_generation_cost: usize,
}

#[derive(Debug)]
struct Generation<K, V> {
    /// Values with their cost.
    entries: HashMap<K, (V, usize)>,
    cost: usize,
}

impl<K, V> Default for Generation<K, V> {
    fn default() -> Self {
        Self { entries: HashMap::new(), cost: 0 }
    }
}

impl<K: Eq + Hash, V: Clone> Cache<K, V> {
    /// Creates an empty cache whose entries have a total cost of at most `budget`; 0 disables caching.
    pub fn new(budget: usize) -> Self {
        Self { generations: Mutex::default(), max_generation_cost: budget / 2 }
    }

    /// Whether caching is disabled.
    pub fn is_off(&self) -> bool {
        self.max_generation_cost == 0
    }

    /// The value cached under `key`.
    pub fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let mut generations = self.lock();
        if let Some((value, _)) = generations[0].entries.get(key) {
            return Some(value.clone());
        }
        let (key, (value, cost)) = generations[1].entries.remove_entry(key)?;
        generations[1].cost -= cost;
        self.put(&mut generations, key, value.clone(), cost);
        Some(value)
    }

    /// Caches a value. A value whose cost exceeds a quarter of a generation is not cached, because it would
    /// evict too many entries.
    pub fn insert(&self, key: K, value: V, cost: usize) {
        if cost <= self.max_generation_cost / 4 {
            self.put(&mut self.lock(), key, value, cost);
        }
    }

    /// The total cost of all entries.
    pub fn cost(&self) -> usize {
        self.lock().iter().map(|generation| generation.cost).sum()
    }

    fn put(&self, generations: &mut [Generation<K, V>; 2], key: K, value: V, cost: usize) {
        if generations[0].cost + cost > self.max_generation_cost {
            generations[1] = std::mem::take(&mut generations[0]);
        }
        let [young, _] = generations;
        young.cost += cost;
        if let Some((_, before)) = young.entries.insert(key, (value, cost)) {
            young.cost -= before;
        }
    }

    /// Locks both generations. The lock is not poisoned by a panic, because the tables are always consistent.
    fn lock(&self) -> MutexGuard<'_, [Generation<K, V>; 2]> {
        self.generations.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_holds_and_only_entries_that_are_read_stay_cached() {
        let cache: Cache<String, usize> = Cache::new(100);
        cache.insert("kept".to_owned(), 0, 7);
        for number in 1..1000 {
            cache.insert(number.to_string(), number, number % 12);
            assert_eq!(cache.get("kept"), Some(0));
            assert!(cache.cost() <= 100, "{}", cache.cost());
        }
        assert_eq!(cache.get("1"), None);
    }

    #[test]
    fn values_that_cost_too_much_are_not_cached() {
        let cache: Cache<&str, ()> = Cache::new(100);
        cache.insert("large", (), 13);
        cache.insert("small", (), 12);
        assert_eq!((cache.get("large"), cache.get("small")), (None, Some(())));
        let off: Cache<&str, ()> = Cache::new(0);
        off.insert("any", (), 1);
        assert!(off.is_off() && off.get("any").is_none());
    }

    #[test]
    fn an_entry_that_is_replaced_counts_once() {
        let cache: Cache<&str, usize> = Cache::new(100);
        cache.insert("a", 1, 9);
        cache.insert("a", 2, 5);
        assert_eq!((cache.cost(), cache.get("a")), (5, Some(2)));
    }
}
