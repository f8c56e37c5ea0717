import { httpEnvelope, type ResponseEnvelope, type ResultFacts } from "../src/index.ts";

/** An envelope that carries facts of its own, as one that came over HTTP does. */
export function withFacts<T>(data: T, waybill: ResultFacts): ResponseEnvelope<T> {
  return httpEnvelope(data, { statusCode: 200, headers: {}, contentType: "application/json", waybill });
}
