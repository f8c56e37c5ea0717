/** What every answer of the inspector says to browsers: nothing from elsewhere, nothing inline, in no frame. */
export const SAFE_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data: blob:",
    "media-src data: blob:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; "),
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "x-frame-options": "DENY",
};

/** What an answer of the API says besides. */
export const JSON_HEADERS: Readonly<Record<string, string>> = {
  ...SAFE_HEADERS,
  "content-type": "application/json; charset=utf-8",
  "cache-control": "no-store",
};

/** What a stream of events says: nobody on the way is to hold it back. */
export const LINES_HEADERS: Readonly<Record<string, string>> = {
  ...SAFE_HEADERS,
  "content-type": "application/x-ndjson; charset=utf-8",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
};
