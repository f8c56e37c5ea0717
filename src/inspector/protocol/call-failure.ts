/** Why a request was not answered. */
export interface Failure {
  readonly error: CallFailure;
}

/** A call that never ran or broke, or a request of the page that was refused. */
export interface CallFailure {
  readonly code: string;
  readonly message: string;
  readonly retryable?: boolean;
  readonly correctable?: boolean;
  readonly details?: unknown;
}
