import { createMemoryBus, createMemoryTransport, createWireBus, MemoryBroker } from "../src/call/index.ts";
import { CONTRACT_OPTIONS, CONTRACT_SIZES, describeBus, pairOf } from "./bus-contract.ts";

describeBus("the in-process bus", {
  connect: () => {
    const bus = createMemoryBus();
    return pairOf(async () => bus);
  },
});

describeBus("the wire bus on an in-process transport", {
  sizes: CONTRACT_SIZES,
  connect: () => {
    const broker = new MemoryBroker();
    const transport = () => createMemoryTransport({ broker, maxMessageBytes: CONTRACT_SIZES.message });
    return pairOf(async () => createWireBus(transport(), CONTRACT_OPTIONS));
  },
});
