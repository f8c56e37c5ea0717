import type { ComponentChildren } from "preact";
import type { ApiError } from "../connection/api.ts";
import type { Asked } from "../session.ts";

/** Says that something is on its way. */
function Loading({ what }: { readonly what: string }) {
  return (
    <div class="notice row" role="status">
      <span class="spinner" aria-hidden="true" />
      <span>Loading {what}…</span>
    </div>
  );
}

/** Says of what is asked for why it is not there: it is on its way, or it failed. */
export function Pending({
  value,
  error,
  again,
  what,
}: Pick<Asked<unknown>, "value" | "error" | "again"> & { readonly what: string }) {
  if (error !== undefined) return <Failed error={error} again={again} />;
  return value === undefined ? <Loading what={what} /> : null;
}

/** Says that there is nothing, and what to do about it. */
export function Empty({
  title,
  children,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="notice empty">
      <strong>{title}</strong>
      {children}
    </div>
  );
}

/** Says what went wrong, and offers to try again. */
function Failed({ error, again }: { readonly error: ApiError; readonly again?: (() => void) | undefined }) {
  return (
    <div class="notice bad" role="alert">
      <span class="break">
        {error.message} <span class="soft small">({error.failure.code})</span>
      </span>
      {again !== undefined && (
        <button type="button" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}
