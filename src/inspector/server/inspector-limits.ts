/** Calls that are remembered; the oldest go first. */
export const KEPT_CALLS = 5_000;

/** Characters of JSON that are remembered of one input, result or error; what is longer is not kept at all. */
export const KEPT_CHARACTERS_EACH = 256 * 1_024;

/** Characters of JSON that are remembered in all; the oldest inputs, results and errors go first, and their calls stay in the list. */
export const KEPT_CHARACTERS = 32 * 1_024 * 1_024;

/** Characters that are remembered of an operation id, a request id, a code or a name in the list. */
export const KEPT_NAME_CHARACTERS = 200;

/** Characters of a subject whose calls are told from those of others; calls of a longer one are shown to operators alone. */
export const KEPT_SUBJECT_CHARACTERS = 1_000;

/** Values of one subscription that are remembered, the last ones. */
export const KEPT_VALUES = 20;

/** Pages that may follow what happens at a time. */
export const MOST_PAGES = 50;

/** Of those, pages of one subject. */
export const MOST_PAGES_EACH = 10;

/** Milliseconds that a page is told what happens; then it asks again, and readers who may not any more are refused. */
export const LONGEST_FEED_MS = 10 * 60 * 1_000;

/** Calls in one event of the feed. */
export const ROWS_PER_EVENT = 500;

/** Calls that wait for a page which does not keep up; more are left out, and counted. */
export const MOST_WAITING_ROWS = 2_000;

/** Milliseconds between events of the feed; changes in between are told together. */
export const FEED_INTERVAL_MS = 200;

/** Milliseconds of silence after which a page is told that the connection is alive. */
export const PING_MS = 15_000;

/** Calls that pages may have running at a time, all of them together. */
export const MOST_RUNS = 64;

/** Milliseconds that a query or mutation of a page may take, where the config does not say. */
export const RUN_TIMEOUT_MS = 60_000;

/** Characters of JSON that are sent of one result. */
export const MOST_RESULT_CHARACTERS = 8 * 1_024 * 1_024;

/** Milliseconds that a page may take to read the rest of an answer; then it is cut off. */
export const WRITE_TIMEOUT_MS = 30_000;

/** Milliseconds between looks at whether those whose calls run are still let in. */
export const ACCESS_INTERVAL_MS = 1_000;

/** Characters that are sent of the message of an error. */
export const MOST_MESSAGE_CHARACTERS = 10_000;

/** Bytes that wait for a page which does not keep up, beyond which progress and log lines are left out. */
export const MOST_WAITING_BYTES = 1_024 * 1_024;

/** Questions that one call may have open at a time. */
export const MOST_QUESTIONS = 20;

/** Calls that one caller may have running at a time, where callers say who they are. */
export const MOST_RUNS_EACH = 16;

/** Bytes of a request that holds an input, where the config does not say. */
export const LARGE_BODY_BYTES = 4 * 1_024 * 1_024;

/** Values in such a request. */
export const MOST_INPUT_VALUES = 250_000;

/** Bytes of a request that holds a result to be written in each format, or a text to decode. */
export const DECODED_BODY_BYTES = 2 * 1_024 * 1_024;

/** Values in such a result or text: each is looked at about thirty times. */
export const MOST_DECODED_VALUES = 25_000;

/** Such requests that wait for their turn: one is answered at a time. */
export const MOST_DECODES_WAITING = 32;

/** Milliseconds that one of them may take; then its thread is ended. */
export const DECODE_TIMEOUT_MS = 5_000;

/** Milliseconds that this thread may take to start. */
export const DECODE_START_MS = 10_000;

/** Milliseconds without such a request after which the thread ends; the next one starts another. */
export const DECODE_IDLE_MS = 10_000;

/** Mebibytes that the heap of this thread may take. */
export const DECODE_MEMORY_MB = 256;

/** Characters of the id of an operation. */
export const MOST_ID_CHARACTERS = 300;

/** Bytes of any other request. */
export const SMALL_BODY_BYTES = 1_024 * 1_024;

/** Results that are read from one text. */
export const MOST_DECODED = 200;

/** Messages and lines of standard error that are remembered of one source. */
export const KEPT_LINES_EACH = 500;

/** Characters of JSON that are remembered of one of them; what is longer is not kept at all. */
export const KEPT_LINE_CHARACTERS = 16 * 1_024;

/** Characters that are remembered of all of them together. */
export const KEPT_LOG_CHARACTERS = 4 * 1_024 * 1_024;

/** Sources of which some are remembered. */
export const KEPT_LOG_SOURCES = 200;

/** Resources, templates and prompts that are listed of one source, of each so many. */
export const MOST_OFFERED = 1_000;

/** Requests for resources and prompts that run at a time, of all pages together. */
export const MOST_OFFERS_ASKED = 32;

/** Of those, requests of one caller, where callers are told apart. */
export const MOST_OFFERS_ASKED_EACH = 8;

/** Milliseconds that such a request may take. */
export const OFFER_TIMEOUT_MS = 30_000;

/** Resources that pages may follow at a time, all of them together. */
export const MOST_FOLLOWED = 50;

/** Of those, resources that one caller may follow. */
export const MOST_FOLLOWED_EACH = 10;

/** Characters of a text that is looked for in inputs and results. */
export const MOST_FIND_CHARACTERS = 200;
