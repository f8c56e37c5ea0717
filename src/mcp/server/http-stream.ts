/** How a stream ended: all of it was sent, or whoever read it left or was too slow. */
export type StreamEnd = "sent" | "left";

/**
 * Passes a stream on and says when it ends. The source is never held up: a reader that is more than `maxBytes` behind when the
 * next piece comes is given up.
 */
export function watchStream(
  source: ReadableStream<Uint8Array>,
  maxBytes: number,
  onEnd: (end: StreamEnd) => void,
): ReadableStream<Uint8Array> {
  const reader = source.getReader();
  let left = false;
  const leave = (reason: unknown): void => {
    if (left) return;
    left = true;
    reader.cancel(reason).catch(() => {});
    onEnd("left");
  };
  const pump = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    for (;;) {
      const { done, value } = await reader.read();
      if (left) return;
      if (done) {
        left = true;
        controller.close();
        return onEnd("sent");
      }
      if ((controller.desiredSize ?? 0) <= 0) {
        const slow = new Error(`The reader of the stream is more than ${maxBytes} bytes behind.`);
        controller.error(slow);
        return leave(slow);
      }
      controller.enqueue(value);
    }
  };
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        pump(controller).catch((cause: unknown) => {
          if (!left) controller.error(cause);
          leave(cause);
        });
      },
      cancel: leave,
    },
    new ByteLengthQueuingStrategy({ highWaterMark: maxBytes }),
  );
}

/** Tells whether a response is a stream of events. */
export function isEventStream(response: Response): boolean {
  return (
    response.body !== null && response.headers.get("content-type")?.startsWith("text/event-stream") === true
  );
}

/** Replaces the body of a response. */
export function withBody(response: Response, body: ReadableStream<Uint8Array> | string): Response {
  return new Response(body, response);
}
