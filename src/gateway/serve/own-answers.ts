import { randomId } from "../../core/execution/request-id.ts";
import type { HttpAnswer } from "../../http/exchange.ts";
import type { Refusal } from "../../http/refusal.ts";
import { refusalAnswer } from "../../openapi/server/admission.ts";

/** Answers with why a request is not heard. */
export function ownRefusal(refusal: Refusal): HttpAnswer {
  return refusalAnswer(refusal, randomId());
}

/** Answers with JSON that is nobody else's to keep. */
export function jsonAnswer(value: unknown, status = 200): HttpAnswer {
  return {
    status,
    headers: { "content-type": "application/json", "cache-control": "no-store" },
    body: `${JSON.stringify(value)}\n`,
  };
}

/** Answers with text. */
export function textAnswer(text: string, type: string): HttpAnswer {
  return { status: 200, headers: { "content-type": type, "cache-control": "no-store" }, body: text };
}

/** The refusal of what is not served here. */
export const NOTHING_HERE: Refusal = {
  status: 404,
  message: "There is nothing here; GET / says what there is.",
  headers: {},
};

/** The scope that shows metrics, where callers are asked who they are. */
export const METRICS_SCOPE = "waybill:metrics";

/** The refusal of metrics to a caller without their scope. */
export const NO_METRICS: Refusal = {
  status: 403,
  message: `Metrics need a token with the scope "${METRICS_SCOPE}".`,
  headers: { "www-authenticate": `Bearer error="insufficient_scope", scope="${METRICS_SCOPE}"` },
};

/** The refusal of a request that says twice who is asking: whoever stands in front may have looked at the other one. */
export const ASKED_TWICE: Refusal = {
  status: 401,
  message: "A request has one Authorization header.",
  headers: { "www-authenticate": 'Bearer error="invalid_request"' },
};

/** The refusal of a request that names two hosts: whoever stands in front may have looked at the other one. */
export const TWO_HOSTS: Refusal = { status: 400, message: "A request has one Host header.", headers: {} };

/** The refusal of a method that only reads are for. */
export const ONLY_READ: Refusal = {
  status: 405,
  message: "This address can only be read.",
  headers: { allow: "GET, HEAD" },
};
