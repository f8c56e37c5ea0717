import { CallError } from "../../core/errors/errors.ts";
import type { HttpRequest } from "../../http/exchange.ts";

/** Throws unless a request of the API comes from the inspector's own page, or from no page at all. */
export function assertOwnPage(request: Pick<HttpRequest, "header">): void {
  assertOwnOrigin(request);
  const site = request.header("sec-fetch-site");
  if (site !== undefined && site !== "same-origin") throw foreign();
}

/** Throws where another page wants a file of the inspector for anything but to go there. */
export function assertOwnUse(request: Pick<HttpRequest, "header">): void {
  assertOwnOrigin(request);
  const site = request.header("sec-fetch-site");
  if (site === undefined || site === "same-origin" || site === "none") return;
  const isVisit =
    request.header("sec-fetch-mode") === "navigate" && request.header("sec-fetch-dest") === "document";
  if (!isVisit) throw foreign();
}

function assertOwnOrigin(request: Pick<HttpRequest, "header">): void {
  const origin = request.header("origin")?.toLowerCase();
  if (origin === undefined) return;
  const host = request.header("host")?.toLowerCase();
  if (origin !== `http://${host}` && origin !== `https://${host}`) throw foreign();
}

function foreign(): CallError {
  return new CallError("ACCESS_DENIED", "Only the inspector's own page may ask here.", { stack: false });
}
