import { expect, it, onTestFinished } from "vitest";
import { openFleet, tokenOf } from "./fleet/fleet.js";
import { natsSuite } from "./nats-server.ts";

interface Replicas {
  readonly own: string;
  readonly replicas: readonly {
    readonly replica: string;
    readonly calls: number;
    readonly recent: readonly object[];
  }[];
}

natsSuite("A fleet that is looked at", () => {
  it("is shown whole at each replica, every replica by its name, to operators alone", async () => {
    const fleet = await openFleet({ callers: ["ann", "ben"], config: { serve: { inspect: true } } });
    onTestFinished(() => fleet.close());
    const as = (name: string) => ({ headers: { authorization: `Bearer ${tokenOf(name)}` } });
    const look = async (at: number): Promise<Replicas> =>
      (await (await fetch(`${fleet.urls[at]}/inspect/api/replicas`, as("ann"))).json()) as Replicas;
    for (let at = 0; at < 3; at++) {
      for (let call = 0; call <= at; call++) {
        const url = `${fleet.urls[at]}/api/shop/look?call=${call}&owner=ben&ms=0`;
        expect((await fetch(url, as("ben"))).status).toBe(200);
      }
    }
    for (let at = 0; at < 3; at++) {
      await expect
        .poll(async () => (await look(at)).replicas.map(({ calls }) => calls).sort())
        .toEqual([1, 2, 3]);
      const { own, replicas } = await look(at);
      expect(replicas.find(({ replica }) => replica === own)?.calls).toBe(at + 1);
      const calls = replicas.flatMap(({ recent }) => recent);
      expect(calls).toHaveLength(6);
      expect(calls[0]).toMatchObject({ operation: "shop.look", outcome: "ok", subject: "ben" });
      const metrics = await (await fetch(`${fleet.urls[at]}/metrics`, as("ann"))).text();
      expect(metrics).toMatch(/^waybill_replicas 3$/m);
      expect(metrics).toMatch(
        new RegExp(`^waybill_replica_info\\{replica="${own}",host=".+",version=".+"\\} 1$`, "m"),
      );
    }
    expect((await fetch(`${fleet.urls[0]}/inspect/api/replicas`, as("ben"))).status).toBe(403);
    expect((await fetch(`${fleet.urls[0]}/inspect/api/replicas`)).status).toBe(401);
  });
});
