//! The cases of the contract.

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};
use qontract_client_blobs::{BlobContent, Etag, Precondition};

use crate::stores::{Store, is_stale, key};

/// A case: its name, and a function that gets an empty store.
pub type ContractCase = (&'static str, for<'a> fn(&'a Store) -> BoxFuture<'a, ()>);

/// All cases.
pub const CASES: [ContractCase; 8] = [
    ("a-blob-is-what-was-put", |store| what_was_put(store).boxed()),
    ("only-what-is-absent", |store| only_what_is_absent(store).boxed()),
    ("only-what-matches", |store| only_what_matches(store).boxed()),
    ("removal-with-a-tag", |store| removal(store).boxed()),
    ("odd-keys", |store| odd_keys(store).boxed()),
    ("metadata", |store| metadata(store).boxed()),
    ("many-pages", |store| many_pages(store).boxed()),
    ("a-thousand-at-once", |store| a_thousand_at_once(store).boxed()),
];

async fn what_was_put(store: &Store) {
    assert_eq!(store.get("a/b").await, None);
    assert_eq!(store.blobs.head(store.read(), &key("a/b")).await.unwrap(), None);
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let tag = store
        .blobs
        .put(store.write(), &key("a/b"), &BlobContent::new(bytes.clone()), &Precondition::Any)
        .await
        .unwrap();
    let blob = store.get("a/b").await.unwrap();
    assert_eq!((&blob.bytes, &blob.head.etag, blob.head.size), (&bytes, &tag, 100_000));
    assert_eq!(store.blobs.head(store.read(), &key("a/b")).await.unwrap(), Some(blob.head));
    let empty = store.put("a/b", "", &Precondition::Any).await.unwrap();
    assert_ne!(empty, tag);
    assert_eq!(store.text("a/b").await.as_deref(), Some(""));
    let listed = store.list("").await;
    assert_eq!((listed.len(), &listed[0].etag, listed[0].size), (1, &empty, 0));
}

async fn only_what_is_absent(store: &Store) {
    store.put("x", "first", &Precondition::IfAbsent).await.unwrap();
    assert!(is_stale(&store.put("x", "second", &Precondition::IfAbsent).await));
    assert!(is_stale(&store.put("x", "first", &Precondition::IfAbsent).await));
    assert_eq!(store.text("x").await.as_deref(), Some("first"));
    store.delete("x", None).await.unwrap();
    store.put("x", "third", &Precondition::IfAbsent).await.unwrap();
}

async fn only_what_matches(store: &Store) {
    let nothing = Precondition::IfMatch(Etag("\"0123456789abcdef0123456789abcdef\"".to_owned()));
    assert!(is_stale(&store.put("x", "a", &nothing).await));
    assert_eq!(store.get("x").await, None);
    let first = store.put("x", "one", &Precondition::Any).await.unwrap();
    let second = store.put("x", "two", &Precondition::IfMatch(first.clone())).await.unwrap();
    assert!(is_stale(&store.put("x", "three", &Precondition::IfMatch(first)).await));
    assert_eq!(store.text("x").await.as_deref(), Some("two"));
    store.put("x", "three", &Precondition::IfMatch(second)).await.unwrap();
}

async fn removal(store: &Store) {
    let first = store.put("x", "one", &Precondition::Any).await.unwrap();
    let second = store.put("x", "two", &Precondition::Any).await.unwrap();
    assert!(is_stale(&store.delete("x", Some(&first)).await));
    assert_eq!(store.text("x").await.as_deref(), Some("two"));
    store.delete("x", Some(&second)).await.unwrap();
    assert_eq!(store.get("x").await, None);
    // Deleting a missing blob succeeds, with any expected tag.
    store.delete("x", Some(&first)).await.unwrap();
    store.delete("x", None).await.unwrap();
}

async fn odd_keys(store: &Store) {
    let mut odd = vec![
        "a",
        "a/b",
        "a/b/c",
        "a.blob/b",
        "a b",
        "a+b&c=d?e#f",
        "a%2fb",
        "ä/ö/日本",
        ".hidden",
        "x/.hidden",
        "a\"b'c<d>",
        "back\\slash",
        "trailing/",
        "double//slash",
    ];
    for name in &odd {
        store
            .put(name, name, &Precondition::IfAbsent)
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    for name in &odd {
        assert_eq!(store.text(name).await.as_deref(), Some(*name));
    }
    odd.sort_unstable();
    assert_eq!(store.keys("").await, odd);
    assert_eq!(store.keys("a/").await, ["a/b", "a/b/c"]);
    assert_eq!(store.keys("a/b").await, ["a/b", "a/b/c"]);
    assert_eq!(store.keys("ä/").await, ["ä/ö/日本"]);
    assert_eq!(store.keys("none").await, Vec::<String>::new());
    for name in &odd {
        store.delete(name, None).await.unwrap();
    }
    assert_eq!(store.keys("").await, Vec::<String>::new());
}

async fn metadata(store: &Store) {
    let content = |bytes: &str, pairs: &[(&str, &str)]| {
        let metadata = pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        BlobContent { bytes: bytes.into(), metadata }
    };
    let put = async |content: BlobContent| {
        store.blobs.put(store.write(), &key("x"), &content, &Precondition::Any).await.unwrap();
        let head = store.blobs.head(store.read(), &key("x")).await.unwrap().unwrap();
        assert_eq!(head.metadata, content.metadata);
        assert_eq!(store.get("x").await.unwrap().head, head);
    };
    put(content("one", &[("a", "1"), ("b-c_d", "x y=z")])).await;
    put(content("one", &[("a", "2")])).await;
    put(content("two", &[("b", "3")])).await;
    put(content("two", &[])).await;
    put(content("one", &[])).await;
    let odd = content("one", &[("a", "é")]);
    store.blobs.put(store.write(), &key("x"), &odd, &Precondition::Any).await.unwrap_err();
}

async fn many_pages(store: &Store) {
    let names: Vec<String> = (0..1050).map(|number| format!("many/{number:04}")).collect();
    for chunk in names.chunks(50) {
        join_all(chunk.iter().map(|name| store.put(name, "x", &Precondition::Any))).await;
    }
    store.put("other", "x", &Precondition::Any).await.unwrap();
    let first = store.blobs.list(store.read(), "many/", None).await.unwrap();
    assert_eq!(first.entries.len(), 1000);
    let second = store.blobs.list(store.read(), "many/", first.next.as_ref()).await.unwrap();
    assert_eq!((second.entries.len(), second.next), (50, None));
    assert_eq!(store.keys("many/").await, names);
}

async fn a_thousand_at_once(store: &Store) {
    let texts: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
    let outcomes = join_all(texts.iter().map(|text| store.put("lock", text, &Precondition::IfAbsent))).await;
    let winners: Vec<&String> =
        texts.iter().zip(&outcomes).filter(|(_, outcome)| outcome.is_ok()).map(|(text, _)| text).collect();
    assert_eq!(
        winners.len(),
        1,
        "{:?}",
        outcomes.iter().find(|outcome| !is_stale(outcome) && outcome.is_err())
    );
    assert_eq!(outcomes.iter().filter(|outcome| is_stale(outcome)).count(), 999);
    assert_eq!(store.text("lock").await.as_ref(), Some(winners[0]));
}
