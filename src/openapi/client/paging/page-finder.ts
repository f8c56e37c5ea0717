import type { ResponseEnvelope } from "../../../core/envelope/response-meta.ts";

/** What is known of the page after one: how to ask for it, or that there is none. */
export type NextPage =
  | { readonly isLast: true }
  | {
      readonly isLast: false;
      /** Tells it from other pages, for people and programs that keep it. */
      readonly token: string;
      readonly input: unknown;
    }
  | {
      readonly isLast: false;
      /** What asks for it in the query, none of which the document declares: there is no input for it. */
      readonly undeclared: readonly string[];
    };

/** Looks for the page after one; gives nothing where it cannot tell. Never throws, whatever came back. */
export type PageFinder = (envelope: ResponseEnvelope, input: unknown) => NextPage | undefined;

/** There is no page after this one. */
export const LAST_PAGE: NextPage = { isLast: true };
