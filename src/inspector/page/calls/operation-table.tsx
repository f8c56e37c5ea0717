import { useState } from "preact/hooks";
import { Empty } from "../parts/notice.tsx";
import { counted, showSomeMs } from "../parts/show.ts";
import { visibleText } from "../parts/visible-text.ts";
import { useSession } from "../session.ts";
import { byOperation, COLUMNS, type Figures, sortFigures } from "./by-operation.ts";

const MOST = 500;

/** How the calls held went, operation by operation; choosing one lists its calls. */
export function OperationTable({ onChoose }: { readonly onChoose: (operation: string) => void }) {
  const { rows } = useSession().live;
  const [column, setColumn] = useState(1);
  const figures = sortFigures(byOperation(rows), column);
  if (figures.length === 0) return <Empty title="No call has ended yet." />;
  return (
    <div class="operation-table scroll">
      <p class="soft small">
        Of the {counted(rows.length, "call")} held here.
        {figures.length > MOST && ` The first ${MOST} operations.`}
      </p>
      <table class="data" aria-label="Figures by operation">
        <thead>
          <tr>
            {COLUMNS.map((title, index) => (
              <th
                key={title}
                scope="col"
                aria-sort={index !== column ? undefined : index === 0 ? "ascending" : "descending"}
              >
                <button type="button" class="quiet" onClick={() => setColumn(index)}>
                  {title}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {figures.slice(0, MOST).map((one) => (
            <Line key={one[0]} figures={one} onChoose={onChoose} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Line(props: { readonly figures: Figures; readonly onChoose: (operation: string) => void }) {
  const [operation, ...numbers] = props.figures;
  return (
    <tr>
      <th scope="row">
        <button type="button" class="quiet mono cut" onClick={() => props.onChoose(operation)}>
          <bdi>{visibleText(operation, 200)}</bdi>
        </button>
      </th>
      {numbers.map((value, index) => (
        <td key={index} class="number">
          {index < 2 ? value?.toLocaleString("en") : showSomeMs(value)}
        </td>
      ))}
    </tr>
  );
}
