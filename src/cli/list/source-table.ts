import type { SourceReport, SourceState } from "../../gateway/sources/source.ts";
import type { Io } from "../io.ts";
import { createStyle, type Style } from "../terminal/style.ts";
import { type Cell, renderTable } from "../terminal/table.ts";

/** Writes a table of sources: how each is doing, of what kind it is, what it holds and where it is. */
export async function sourceTable(
  io: Io,
  reports: readonly SourceReport[],
  stream: NodeJS.WriteStream,
  indent = 0,
): Promise<string> {
  const style = createStyle(stream, io.env);
  const rows = reports.map((report): readonly Cell[] => [
    report.name,
    stateCell(report.state, style),
    report.kind,
    String(report.operations),
    report.startMs === undefined ? "" : String(Math.round(report.startMs)),
    report.protocol ?? "",
    report.target,
  ]);
  const head = ["SOURCE", "STATE", "KIND", "OPERATIONS", "START MS", "PROTOCOL", "FROM"];
  return renderTable(rows, { head, stream, env: io.env, indent });
}

function stateCell({ status }: SourceState, style: Style): Cell {
  switch (status) {
    case "up":
      return { text: status, paint: style.green };
    case "down":
      return { text: status, paint: style.red };
    case "connecting":
      return { text: status, paint: style.yellow };
    case "disabled":
    case "closed":
      return { text: status, paint: style.dim };
  }
}
