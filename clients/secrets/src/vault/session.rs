//! The current Vault session.
//!
//! **Invariant:** at most one login or renewal, which holds the lock, runs at a time. Callers that waited for
//! a failed login share its failure.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use qontract_access::AccessPermit;
use qontract_client_http::{Request, Secret, StatusCode};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Vault;
use super::login::Login;
use super::token_lease::TokenLease;
use crate::error::SecretsError;

/// A token and its lifetime.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub token: Secret,
    /// The number of the login that created the session.
    pub number: u64,
    pub lease: Option<TokenLease>,
}

impl Session {
    /// Adds the token to a request.
    pub fn sign(&self, request: Request) -> Request {
        request.secret_header("x-vault-token", &self.token)
    }

    fn needs_renewal(&self, now: Instant) -> bool {
        self.lease.is_some_and(|lease| lease.needs_renewal(now))
    }

    fn is_expired(&self, now: Instant) -> bool {
        self.lease.is_some_and(|lease| lease.is_expired(now))
    }

    fn is_renewable(&self) -> bool {
        self.lease.is_some_and(|lease| lease.is_renewable())
    }
}

/// The session, shared by all callers.
#[derive(Default)]
pub(super) struct SharedSession {
    state: Mutex<SessionState>,
    /// Number of login attempts; read without the lock.
    attempts: AtomicU64,
}

#[derive(Default)]
struct SessionState {
    session: Option<Session>,
    failure: Option<SecretsError>,
}

impl SharedSession {
    /// A valid session, renewed or replaced if necessary.
    pub async fn current(&self, vault: &Vault, access: AccessPermit<'_>) -> Result<Session, SecretsError> {
        let seen = self.attempts.load(Ordering::SeqCst);
        let mut state = self.state.lock().await;
        let Some(session) = state.session.clone() else {
            return self.log_in_once(&mut state, vault, access, seen).await;
        };
        let now = Instant::now();
        if !session.needs_renewal(now) {
            return Ok(session);
        }
        if session.is_renewable()
            && !session.is_expired(now)
            && let Ok(renewed) = vault.renew(access, &session).await
        {
            return Ok(state.session.insert(renewed).clone());
        }
        match self.log_in_once(&mut state, vault, access, seen).await {
            // The old token is used while it is valid. A later login may succeed before the token expires.
            Err(error) if error.is_transient() && !session.is_expired(Instant::now()) => Ok(session),
            other => other,
        }
    }

    /// Replaces a session that Vault no longer accepts.
    pub async fn replace(
        &self,
        vault: &Vault,
        access: AccessPermit<'_>,
        ended: &Session,
    ) -> Result<Session, SecretsError> {
        let seen = self.attempts.load(Ordering::SeqCst);
        let mut state = self.state.lock().await;
        match (&state.session, &vault.shared.login) {
            (Some(session), _) if session.number != ended.number => Ok(session.clone()),
            (_, Login::Token(_)) => Err(vault.login_error(StatusCode::FORBIDDEN)),
            (_, Login::AppRole { .. } | Login::Kubernetes { .. }) => {
                state.session = None;
                self.log_in_once(&mut state, vault, access, seen).await
            }
        }
    }

    async fn log_in_once(
        &self,
        state: &mut SessionState,
        vault: &Vault,
        access: AccessPermit<'_>,
        seen: u64,
    ) -> Result<Session, SecretsError> {
        let tries = self.attempts.load(Ordering::SeqCst);
        if let Some(failure) = state.failure.as_ref().filter(|_| tries > seen) {
            return Err(failure.clone());
        }
        let session = vault.log_in(access, tries).await;
        self.attempts.fetch_add(1, Ordering::SeqCst);
        state.failure = session.as_ref().err().cloned();
        let session = session?;
        Ok(state.session.insert(session).clone())
    }
}

impl fmt::Debug for SharedSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sessions({} logins)", self.attempts.load(Ordering::SeqCst))
    }
}
