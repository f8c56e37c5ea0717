import type { HttpRequest } from "./exchange.ts";

/** What of a request decides whether it is heard. */
export type RequestHead = Pick<HttpRequest, "method" | "path" | "origin" | "header">;

/** Why a request is not heard, to be written in the form the clients of an edge read. */
export interface Refusal {
  readonly status: number;
  readonly message: string;
  readonly headers: Readonly<Record<string, string>>;
}
