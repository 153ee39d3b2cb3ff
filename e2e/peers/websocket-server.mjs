// A server over WebSocket that agrees to no subprotocol: behind each connection a stdio server of its own, whose script and
// arguments the command line names, one message a frame. It is to be run with announce.mjs.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { WebSocketServer } from 'ws';

const server = new WebSocketServer({ host: '127.0.0.1', port: 0, handleProtocols: () => false });
server.on('connection', socket => {
    const child = spawn(process.execPath, process.argv.slice(2), { stdio: ['pipe', 'pipe', 'ignore'] });
    const end = () => void child.kill('SIGKILL');
    process.on('exit', end);
    createInterface({ input: child.stdout }).on('line', line => socket.send(line));
    child.on('exit', () => socket.close());
    child.stdin.on('error', () => socket.close());
    socket.on('message', message => child.stdin.write(`${message}\n`));
    socket.on('error', end).on('close', () => {
        end();
        process.off('exit', end);
    });
});
process.on('SIGTERM', () => process.exit(0));
