//! A dry run writes nothing, regardless of the permit.

use qontract_access::{Mode, WriteBounds};
use qontract_client_blobs::{
    BlobContent, BlobReader as _, BlobWriter as _, BlobsError, Directory, Precondition,
};
use qontract_testkit::aws::TestAws;
use qontract_testkit::{Scratch, bounded_permits, permits};

use crate::stores::{key, s3};

#[tokio::test]
#[ignore = "needs an S3 server (QONTRACT_PYTHON); run by `cargo xtask test`"]
async fn real_s3_gets_no_write_in_a_dry_run() {
    let server = TestAws::start();
    server.bucket("bucket");
    let (stolen, dry) = (permits(Mode::Real).write.unwrap(), permits(Mode::DryRun).read);
    let real = s3(&server, "bucket", Mode::Real).await;
    let name = key("x");
    real.put(&stolen, &name, &BlobContent::new("kept"), &Precondition::Any).await.unwrap();
    for bucket in [s3(&server, "bucket", Mode::DryRun).await, real.for_run(&dry)] {
        for precondition in [Precondition::Any, Precondition::IfAbsent] {
            let error =
                bucket.put(&stolen, &name, &BlobContent::new("new"), &precondition).await.unwrap_err();
            assert!(matches!(error, BlobsError::Refused(_)), "{error:?}");
            assert!(error.to_string().ends_with("is refused: this is a dry run"), "{error}");
        }
        let error = bucket.delete(&stolen, &name, None).await.unwrap_err();
        assert!(matches!(error, BlobsError::Refused(_)), "{error:?}");
        assert_eq!(bucket.get(&dry, &name).await.unwrap().unwrap().bytes, b"kept");
    }
    let dry_run = s3(&server, "bucket", Mode::DryRun).await;
    dry_run.for_run(&permits(Mode::Real).read).delete(&stolen, &name, None).await.unwrap();
    assert_eq!(real.get(&dry, &name).await.unwrap(), None);
}

#[tokio::test]
async fn a_directory_is_not_written_in_a_dry_run() {
    let scratch = Scratch::new();
    let (stolen, dry) = (permits(Mode::Real).write.unwrap(), permits(Mode::DryRun).read);
    let real = Directory::new(scratch.path().join("store"));
    let (name, content) = (key("x"), BlobContent::new("new"));
    let directory = real.for_run(&dry);
    let error = directory.put(&stolen, &name, &content, &Precondition::Any).await.unwrap_err();
    assert_eq!(error.to_string(), "a dry run does not write blobs");
    assert!(!scratch.path().join("store").exists());
    real.put(&stolen, &name, &content, &Precondition::Any).await.unwrap();
    assert!(directory.delete(&stolen, &name, None).await.is_err());
    assert_eq!(directory.get(&dry, &name).await.unwrap().unwrap().bytes, b"new");
}

#[tokio::test]
#[ignore = "needs an S3 server (QONTRACT_PYTHON); run by `cargo xtask test`"]
async fn a_bounded_permit_writes_no_blob() {
    let server = TestAws::start();
    server.bucket("bucket");
    let bucket = s3(&server, "bucket", Mode::Real).await;
    let permits = bounded_permits(WriteBounds::new([]));
    let (name, permit) = (key("x"), permits.write.unwrap());
    let content = BlobContent::new("new");
    let error = bucket.put(&permit, &name, &content, &Precondition::Any).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "writing to bucket `bucket` is refused: the write permit of this run allows nothing"
    );
    assert!(bucket.delete(&permit, &name, None).await.is_err());
    assert_eq!(bucket.get(&permits.read, &name).await.unwrap(), None);
}
