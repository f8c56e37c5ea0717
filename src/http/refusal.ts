/** What of a request decides whether it is heard; every `Request` is one. */
export interface RequestHead {
  readonly method: string;
  readonly url: string;
  readonly headers: { get(name: string): string | null };
}

/** Writes the response that refuses a request, in the form the clients of an edge read. */
export type Refuse = (
  status: number,
  message: string,
  options?: { readonly headers?: Readonly<Record<string, string>> | undefined },
) => Response;
