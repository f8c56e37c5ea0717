import type { HttpRequest } from "../../http/exchange.ts";
import { requestError } from "./problem-answer.ts";

/** Reads how long the caller of a request will wait, in milliseconds. */
export function readPatience(request: HttpRequest, otherwise: number): number {
  const header = request.header("waybill-timeout-ms") ?? request.header("request-timeout");
  if (header === undefined) return otherwise;
  if (/^\d{1,10}$/.test(header)) return Number(header);
  throw requestError("VALIDATION_ERROR", "The time to wait must be a whole number of milliseconds.");
}
