/** The media type of the text format of Prometheus. */
export const PROMETHEUS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** One number with the labels that tell it from others of the same name. */
export interface Sample {
  /** Put behind the name of the metric. @default nothing */
  readonly suffix?: "_bucket" | "_sum" | "_count" | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly value: number;
}

/** Writes one metric in the text format of Prometheus: what it is, then its samples. */
export function writeMetric(
  name: string,
  type: "counter" | "gauge" | "histogram",
  help: string,
  samples: Iterable<Sample>,
): string {
  const lines = [
    `# HELP ${name} ${help.replace(/\\/g, "\\\\").replace(/\n/g, "\\n")}`,
    `# TYPE ${name} ${type}`,
  ];
  for (const { suffix = "", labels, value } of samples) {
    lines.push(`${name}${suffix}${writeLabels(labels)} ${writeNumber(value)}`);
  }
  return `${lines.join("\n")}\n`;
}

function writeLabels(labels: Sample["labels"]): string {
  const written = Object.entries(labels ?? {}).map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  return written.length === 0 ? "" : `{${written.join(",")}}`;
}

/** A lone surrogate cannot be written as UTF-8, and a reader may stumble over other line breaks than the one that is escaped. */
function escapeLabel(value: string): string {
  return value
    .replace(/\\/g, "\\\\")
    .replace(/"/g, '\\"')
    .replace(/\n/g, "\\n")
    .replace(/[\p{Cc}\p{Cs}\u2028\u2029]/gu, "\ufffd");
}

function writeNumber(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (Number.isFinite(value)) return String(value);
  return value > 0 ? "+Inf" : "-Inf";
}
