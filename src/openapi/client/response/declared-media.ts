import { isSequence, parseMediaType } from "../../media-types.ts";
import type { MediaPlan, OperationPlan, ResponsePlan } from "../plan.ts";

/** Gives what the document says of a status: that very one, its class, or the rest. */
export function responseFor(plan: OperationPlan, status: number): ResponsePlan | undefined {
  const { responses } = plan;
  const exact = String(status);
  const range = `${exact.charAt(0)}XX`;
  return (
    responses.find((response) => response.status === exact) ??
    responses.find((response) => response.status.toUpperCase() === range) ??
    responses.find((response) => response.status === "default")
  );
}

/** Gives what the document says of a media type: that very one, or a range it lies in. */
export function mediaFor(response: ResponsePlan | undefined, type: string): MediaPlan | undefined {
  if (response === undefined || type === "") return undefined;
  const range = `${type.slice(0, type.indexOf("/"))}/*`;
  for (const wanted of [type, range, "*/*"]) {
    const found = response.content.find((media) => parseMediaType(media.mediaType).type === wanted);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Gives the responses that are a success; what is said of the rest counts where nothing is said of success. */
export function successResponses(plan: OperationPlan): readonly ResponsePlan[] {
  const found = plan.responses.filter(({ status }) => /^2(?:XX|[0-9]{2})$/i.test(status));
  return found.length > 0 ? found : plan.responses.filter(({ status }) => status === "default");
}

/** Tells whether every success is a sequence of items. */
export function isStreamed(plan: OperationPlan): boolean {
  const content = successResponses(plan).flatMap((response) => response.content);
  return content.length > 0 && content.every(({ mediaType }) => isSequence(parseMediaType(mediaType).kind));
}

const CONDITIONS = new Set([
  "if-none-match",
  "if-modified-since",
  "if-match",
  "if-unmodified-since",
  "if-range",
]);

/** Tells whether an operation may be answered that nothing changed: it says so, or can be asked. */
export function mayBeUnchanged(plan: OperationPlan): boolean {
  return (
    plan.responses.some(({ status }) => status === "304" || status.toUpperCase() === "3XX") ||
    plan.parameters.some(
      (parameter) => parameter.in === "header" && CONDITIONS.has(parameter.name.toLowerCase()),
    )
  );
}
