// @ts-check

/** A PNG of one red pixel, as base64. */
export const RED_PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/** The same as a content block. */
export const IMAGE = /** @type {const} */ ({ type: "image", data: RED_PIXEL, mimeType: "image/png" });
