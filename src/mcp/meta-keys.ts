/** The key of a tool's `_meta` under which Waybill describes the operation behind it. */
export const OPERATION_META_KEY = "dev.waybill/operation";

/** The key of an operation's `_meta` under which an imported tool keeps what operations have no field for. */
export const TOOL_META_KEY = "dev.waybill/tool";

/** The key of a progress notification's `_meta` under which one value of a subscription rides, with its envelope. */
export const YIELD_META_KEY = "dev.waybill/yield";

/** The key of a call's `_meta` that holds its idempotency key: 1 to 255 printable characters. */
export const IDEMPOTENCY_META_KEY = "dev.waybill/idempotencyKey";

/** The key of `_meta` under which a call gives its request id, and its result echoes it: 1 to 200 printable characters. */
export const REQUEST_ID_META_KEY = "dev.waybill/requestId";

/** The key of a call's `_meta` that says `"wrapped"` where the arguments are `{ input }` for an operation that takes anything. */
export const INPUT_META_KEY = "dev.waybill/input";
