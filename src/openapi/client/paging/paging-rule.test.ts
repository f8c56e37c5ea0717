import { describe, expect, it } from "vitest";
import { checkPagingRule } from "./paging-rule.ts";

const NAME = 'overlay.operations["GET /a"].paging';
const check = (rule: unknown) => () => checkPagingRule(rule, NAME);

describe("checkPagingRule", () => {
  it.each([
    [undefined],
    [false],
    [{ style: "link" }],
    [{ style: "cursor", input: "cursor", next: "/next" }],
    [{ style: "cursor", input: "/body/start_cursor", next: "X-Next-Cursor" }],
    [{ style: "cursor", input: "cursor", next: "" }],
    [{ style: "page", input: "page" }],
    [{ style: "offset", input: "from", size: "n", items: "/rows" }],
    [{ style: "offset", input: "from", size: undefined, items: "" }],
  ])("RE-27 takes %j", (rule) => {
    expect(check(rule)).not.toThrow();
  });

  it.each([
    [true, "paging must be false or an object with a style; it is true."],
    [[], "paging must be false or an object"],
    [{}, 'paging.style must be one of "link", "cursor", "offset" and "page".'],
    [{ style: "cursors" }, "paging.style must be one of"],
    [{ style: "__proto__" }, "paging.style must be one of"],
    [
      { style: "cursor", next: "/next" },
      'paging.input must be the input that asks for a page, such as "cursor"',
    ],
    [{ style: "page", input: "" }, "paging.input must be"],
    [{ style: "page", input: 1 }, "paging.input must be"],
    [
      { style: "cursor", input: "a" },
      'paging.next must be a JSON pointer to the next cursor, such as "/next"',
    ],
    [{ style: "cursor", input: "a", next: "next_cursor" }, '"/next_cursor"'],
    [{ style: "cursor", input: "a", next: "meta.next" }, '"/meta.next"'],
    [{ style: "cursor", input: "a", next: "/n", size: "b" }, "There is no option"],
    [{ style: "link", input: "a" }, "There is no option"],
    [{ style: "page", input: "a", size: 5 }, "paging.size must be text; it is 5."],
    [{ style: "page", input: "a", items: "rows" }, 'paging.items must be a JSON pointer, such as "/rows".'],
  ])("RE-27 refuses %j", (rule, message) => {
    expect(check(rule)).toThrow(TypeError);
    expect(check(rule)).toThrow(message);
  });
});
