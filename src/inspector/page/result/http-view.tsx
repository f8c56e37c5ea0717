import { Badge } from "../parts/badge.tsx";
import { Facts } from "../parts/facts.tsx";
import { listIn, membersIn, textOf } from "../parts/json-text.ts";
import { visibleText } from "../parts/visible-text.ts";

const MOST_HEADERS = 300;

/** What an HTTP answer said besides its body. */
export function HttpView({ meta }: { readonly meta: Readonly<Record<string, unknown>> }) {
  const { statusCode, contentType, headers, setCookie } = meta;
  const listed: readonly (readonly [string, unknown])[] = [
    ...Object.entries(membersIn(headers)),
    ...listIn(setCookie).map((cookie): [string, unknown] => ["set-cookie", cookie]),
  ];
  const status = Number(textOf(statusCode));
  return (
    <Facts
      facts={[
        [
          "Status",
          <Badge tone={status >= 400 ? "bad" : status >= 300 ? "warn" : "ok"}>
            {visibleText(textOf(statusCode), 40)}
          </Badge>,
        ],
        ["Content type", textOf(contentType ?? "")],
        ...listed
          .slice(0, MOST_HEADERS)
          .map(([name, value]) => [visibleText(name, 200), textOf(value)] as const),
      ]}
    />
  );
}
