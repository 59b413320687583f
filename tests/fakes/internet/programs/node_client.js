// The node clients of the network tests. usage: node node_client.js NAME
const name = process.argv[2];

const programs = {
  async fetch() {
    const answer = await fetch("https://api.test/node");
    console.log(answer.status, (await answer.json()).path);
    const posted = await fetch("https://api.test/node", { method: "POST", body: JSON.stringify({ a: 1 }) });
    console.log((await posted.json()).body);
    const events = await fetch("https://api.test/sse?n=2");
    for await (const part of events.body) process.stdout.write(Buffer.from(part).toString());
  },
  async https() {
    const https = require("https");
    const agent = new https.Agent({ keepAlive: true });
    for (let turn = 0; turn < 2; turn++) {
      await new Promise((resolve, reject) => {
        https.get("https://api.test/https" + turn, { agent }, (answer) => {
          let text = "";
          answer.on("data", (part) => (text += part));
          answer.on("end", () => { console.log(answer.statusCode, JSON.parse(text).path); resolve(); });
        }).on("error", reject);
      });
    }
    agent.destroy();
  },
  async http2() {
    const link = require("http2").connect("https://h2.test");
    const call = link.request({ ":path": "/node2", ":method": "POST" });
    call.end("body");
    let text = "";
    for await (const part of call) text += part;
    console.log(JSON.parse(text).protocol, JSON.parse(text).body);
    link.close();
  },
  ws() {
    const WebSocket = require("ws");
    const link = new WebSocket("wss://ws.test/chat", { perMessageDeflate: process.argv[3] === "deflate" });
    link.on("open", () => link.send("from node"));
    link.on("message", (data) => { console.log(String(data)); link.send("close"); });
    link.on("close", (code) => console.log("closed", code));
    link.on("error", (error) => { console.error(error); process.exit(1); });
  },
};
Promise.resolve(programs[name]()).catch((error) => { console.error(error); process.exit(1); });
