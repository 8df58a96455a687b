// GET a URL through the proxy of HTTPS_PROXY, with node's own modules; what came of it.
// What node 20 and older do not do by themselves: CONNECT, and TLS over that connection.
import http from "node:http";
import https from "node:https";

const proxy = new URL(process.env.HTTPS_PROXY);
const url = new URL(process.argv[2]);
const path = `${url.hostname}:${url.port || 443}`;
const fail = (error) => console.log(`${error.name}: ${error.message}`);

http
  .request({ host: proxy.hostname, port: proxy.port, method: "CONNECT", path })
  .on("connect", (response, socket) => {
    if (response.statusCode !== 200) {
      console.log(`Error: the proxy said ${response.statusCode}`);
      socket.destroy();
      return;
    }
    https
      .get(url, { socket, agent: false }, (answer) => answer.pipe(process.stdout))
      .on("error", fail);
  })
  .on("error", fail)
  .end();
