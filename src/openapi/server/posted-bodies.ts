import { type Identity, ownerOf } from "../../core/access/identity.ts";
import type { CallSlots } from "../../core/limits/call-slots.ts";
import type { AuthenticatedRequest } from "../../http/exchange.ts";
import { noLongerLetIn } from "./no-longer-let-in.ts";
import { type PostedInput, readPosted } from "./read-input.ts";

/** How bodies are read. */
export interface PostedBodiesOptions {
  readonly slots: CallSlots;
  readonly bodyBytes: number;
  /** Tells whether somebody who was let in still is. */
  readonly isCurrent: (identity: Identity | undefined) => boolean;
}

/** Reads what callers post. */
export class PostedBodies {
  readonly #options: PostedBodiesOptions;

  constructor(options: PostedBodiesOptions) {
    this.#options = options;
  }

  /** Reads a body, which counts as a call that runs, for it takes as much room; its caller may be let in no more by its end. */
  async read({ request, identity }: AuthenticatedRequest): Promise<PostedInput> {
    const { slots, bodyBytes, isCurrent } = this.#options;
    const owner = ownerOf(identity);
    slots.take(owner);
    try {
      const posted = await readPosted(request, bodyBytes);
      if (!isCurrent(identity)) throw noLongerLetIn();
      return posted;
    } finally {
      slots.giveBack(owner);
    }
  }
}
