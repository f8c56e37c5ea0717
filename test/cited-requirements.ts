import ts from "typescript";
import { type SourceFile, walk } from "./source-files.ts";

const RANGE = /\b([A-Z]+-\d+)\s*(?:\.\.\.?|–|—|-|\bto\b|\bthrough\b)\s*(?:[A-Z]+-)?\d+\b/g;
const ID = /\b(?:RE|TE|CS|TR|X)-\d+\b/g;

/** Lists the requirement ids that the titles of a test file cite, each whole; a range cites nothing. */
export function citedRequirements(file: SourceFile): string[] {
  const found: string[] = [];
  walk(file, (node) => {
    if (!ts.isCallExpression(node) || !isTestCall(node)) return;
    const title = titleOf(node.arguments[0]);
    found.push(...(title.replaceAll(RANGE, "").match(ID) ?? []));
  });
  return found;
}

/** True for `it(…)`, `test.each(…)(…)`, `describe.for(…)(…)` and their kin. */
function isTestCall(node: ts.CallExpression): boolean {
  let callee: ts.Expression = node.expression;
  while (ts.isPropertyAccessExpression(callee) || ts.isCallExpression(callee)) callee = callee.expression;
  return ts.isIdentifier(callee) && ["it", "test", "describe"].includes(callee.text);
}

function titleOf(node: ts.Expression | undefined): string {
  if (node === undefined) return "";
  if (ts.isStringLiteralLike(node)) return node.text;
  if (!ts.isTemplateExpression(node)) return "";
  return [node.head.text, ...node.templateSpans.map((span) => span.literal.text)].join("…");
}
