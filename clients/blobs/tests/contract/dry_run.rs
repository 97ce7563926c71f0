//! A dry run writes nothing, whichever permit is passed.

use qontract_access::Mode;
use qontract_client_blobs::{BlobContent, BlobReader as _, BlobWriter as _, BlobsError, Precondition};
use qontract_testkit::aws::TestAws;
use qontract_testkit::permits;

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
