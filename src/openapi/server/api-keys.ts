import type { Identity } from "../../core/access/identity.ts";

/** Which API keys are believed, and whose they are. */
export interface ApiKeyAuth {
  /** The header a key is sent in. @default "x-api-key" */
  readonly header?: string | undefined;
  /** Identities by key, or what finds one; nothing is a key nobody knows. */
  readonly keys:
    | Readonly<Record<string, Identity>>
    | ((key: string) => Identity | undefined | Promise<Identity | undefined>);
}
