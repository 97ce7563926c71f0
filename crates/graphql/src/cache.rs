//! A bounded table of what was made before.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Two generations: what is asked for lives on, what nobody asked for during a whole generation is gone.
#[derive(Debug)]
pub struct Cache<T> {
    generations: Mutex<[HashMap<Box<str>, Arc<T>>; 2]>,
    /// How many entries a generation has.
    size: usize,
}

impl<T> Cache<T> {
    /// An empty table that keeps at most twice `size` entries.
    pub fn new(size: usize) -> Self {
        Self { generations: Mutex::default(), size }
    }

    /// What is kept under `key`.
    pub fn get(&self, key: &str) -> Option<Arc<T>> {
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = generations[0].get(key) {
            return Some(Arc::clone(found));
        }
        let (key, found) = generations[1].remove_entry(key)?;
        Self::put(&mut generations, self.size, key, Arc::clone(&found));
        Some(found)
    }

    /// Keeps `value` under `key`.
    pub fn insert(&self, key: &str, value: Arc<T>) {
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        Self::put(&mut generations, self.size, key.into(), value);
    }

    fn put(generations: &mut [HashMap<Box<str>, Arc<T>>; 2], size: usize, key: Box<str>, value: Arc<T>) {
        if generations[0].len() >= size {
            generations[1] = std::mem::take(&mut generations[0]);
        }
        generations[0].insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_stays_and_the_rest_goes() {
        let cache = Cache::new(2);
        cache.insert("kept", Arc::new(0));
        for number in 1..100 {
            cache.insert(&number.to_string(), Arc::new(number));
            assert_eq!(cache.get("kept").as_deref(), Some(&0));
        }
        assert_eq!(cache.get("1"), None);
        let generations = cache.generations.lock().unwrap();
        assert!(generations[0].len() <= 2 && generations[1].len() <= 2);
    }
}
