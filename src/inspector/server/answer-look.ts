import { type CallError, toCallError } from "../../core/errors/errors.ts";
import { SecretMask } from "../../core/secrets/secret-mask.ts";
import type { DecodeAsk, FormatsAsk } from "../protocol.ts";
import { decodeText } from "./decode-text.ts";
import { formatsOfResult } from "./formats-of-result.ts";
import { maskJson } from "./mask-json.ts";
import { idIn, type Posted, parsePosted, textIn } from "./read-ask.ts";

/** What is looked at, as it goes to the thread that does so. */
export interface LookAsk {
  readonly look: "formats" | "decode";
  /** What a page posted. */
  readonly posted: Uint8Array;
  /** What must not be shown. */
  readonly secrets: readonly string[];
}

/** What becomes of it: JSON without secrets, or why there is none. */
export type LookAnswer =
  | { readonly json: Uint8Array<ArrayBuffer> }
  | { readonly refused: Pick<CallError, "code" | "message" | "httpStatus"> };

const LOOKS: Readonly<Record<LookAsk["look"], (posted: Posted) => unknown>> = {
  formats: (posted) => {
    const operation = posted["operation"] === undefined ? undefined : idIn<FormatsAsk>(posted, "operation");
    return formatsOfResult(posted["envelope"], operation);
  },
  decode: (posted) => decodeText(textIn<DecodeAsk>(posted, "text")),
};

/** Looks at what a page posted; never throws, for the answer goes to another thread. */
export function answerLook({ look, posted, secrets }: LookAsk): LookAnswer {
  try {
    const json = JSON.stringify(LOOKS[look](parsePosted(posted)));
    return { json: new TextEncoder().encode(maskJson(json, maskOf(secrets))) };
  } catch (thrown) {
    const { code, message, httpStatus } = toCallError(thrown);
    return { refused: { code, message, httpStatus } };
  }
}

function maskOf(secrets: readonly string[]): (text: string) => string {
  const mask = new SecretMask();
  for (const secret of secrets) mask.add(secret);
  return (text) => mask.mask(text);
}
