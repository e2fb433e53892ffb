// The screen of a machine: a client of RFB (RFC 6143) in a WebSocket, with the encodings Raw, CopyRect and DesktopSize.
"use strict";
(() => {
  const canvas = document.getElementById("screen");
  const state = document.getElementById("screen-state");
  const context = canvas.getContext("2d", { alpha: false });
  const SHARED = 1, NO_SECURITY = 1, RAW = 0, COPY_RECT = 1, DESKTOP_SIZE = -223, LARGEST = 8192;
  const CONTROL = 0xffe3, ALT = 0xffe9, DELETE = 0xffff;

  // The bytes that have arrived and are not read yet.
  const arrived = { parts: [], length: 0, wake: null, isOver: false };
  const socket = new WebSocket(new URL(canvas.dataset.socket, location.href.replace(/^http/, "ws")), ["binary"]);
  socket.binaryType = "arraybuffer";
  socket.onmessage = (event) => {
    arrived.parts.push(new Uint8Array(event.data));
    arrived.length += event.data.byteLength;
    arrived.wake?.();
  };
  socket.onclose = (event) => {
    arrived.isOver = true;
    arrived.wake?.();
    end(event.reason || "the connection was interrupted");
  };

  let hasEnded = false;
  function end(why) {
    if (hasEnded) return;
    hasEnded = true;
    state.textContent = `Disconnected: ${why}. Reload the page to connect again.`;
    canvas.classList.add("off");
    socket.close();
  }

  async function take(length) {
    while (arrived.length < length) {
      if (arrived.isOver) throw new Error("the connection was interrupted");
      await new Promise((resolve) => { arrived.wake = resolve; });
    }
    const taken = new Uint8Array(length);
    arrived.length -= length;
    for (let at = 0; at < length;) {
      const part = arrived.parts[0].subarray(0, length - at);
      taken.set(part, at);
      at += part.length;
      if (part.length === arrived.parts[0].length) arrived.parts.shift();
      else arrived.parts[0] = arrived.parts[0].subarray(part.length);
    }
    return taken;
  }
  const numbers = async (length) => new DataView((await take(length)).buffer);
  const text = async (length) => new TextDecoder().decode(await take(Math.min(length, 65536)));
  const send = (...bytes) => { if (socket.readyState === WebSocket.OPEN) socket.send(new Uint8Array(bytes)); };
  const u16 = (number) => [number >> 8 & 255, number & 255];
  const u32 = (number) => [...u16(number >>> 16), ...u16(number)];

  // RFC 6143 §7.1: the service asks for no password.
  async function shakeHands() {
    await take(12);
    socket.send(new TextEncoder().encode("RFB 003.008\n"));
    const types = await take((await take(1))[0]);
    if (!types.length) throw new Error(await text((await numbers(4)).getUint32(0)));
    send(NO_SECURITY);
    if ((await numbers(4)).getUint32(0)) throw new Error(await text((await numbers(4)).getUint32(0)));
    send(SHARED);
    const init = await numbers(24);
    await take(init.getUint32(20));
    resize(init.getUint16(0), init.getUint16(2));
    // SetPixelFormat: 32 bits, in the order of a canvas. SetEncodings.
    send(0, 0, 0, 0, 32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 0, 8, 16, 0, 0, 0);
    send(2, 0, ...u16(3), ...u32(COPY_RECT), ...u32(RAW), ...u32(DESKTOP_SIZE));
    state.textContent = "Connected.";
  }

  function resize(width, height) {
    if (!width || !height || width > LARGEST || height > LARGEST) throw new Error("the screen has an impossible size");
    [canvas.width, canvas.height] = [width, height];
  }

  const askFor = (isIncremental) => send(3, isIncremental, 0, 0, 0, 0, ...u16(canvas.width), ...u16(canvas.height));

  async function update() {
    await take(1);
    let isResized = false;
    for (let left = (await numbers(2)).getUint16(0); left > 0; left--) {
      const head = await numbers(12);
      const [x, y, width, height] = [0, 2, 4, 6].map((at) => head.getUint16(at));
      const encoding = head.getInt32(8);
      if (encoding === DESKTOP_SIZE) {
        resize(width, height);
        isResized = true;
        continue;
      }
      if (x + width > canvas.width || y + height > canvas.height) throw new Error("the BMC drew outside the screen");
      if (encoding === COPY_RECT) {
        const from = await numbers(4);
        context.drawImage(canvas, from.getUint16(0), from.getUint16(2), width, height, x, y, width, height);
      } else if (encoding === RAW) {
        const pixels = await take(width * height * 4);
        for (let at = 3; at < pixels.length; at += 4) pixels[at] = 255;
        if (pixels.length) context.putImageData(new ImageData(new Uint8ClampedArray(pixels.buffer), width, height), x, y);
      } else throw new Error("the BMC uses an encoding that it was not asked for");
    }
    canvas.dataset.updates = Number(canvas.dataset.updates || 0) + 1;
    askFor(isResized ? 0 : 1);
  }

  async function run() {
    await shakeHands();
    askFor(0);
    for (;;) {
      const [kind] = await take(1);
      if (kind === 0) await update();
      else if (kind === 1) await take(6 * (await numbers(5)).getUint16(3));
      else if (kind === 3) await take(Math.min((await numbers(7)).getUint32(3), 1 << 20));
      else if (kind !== 2) throw new Error("the BMC sent an unknown message");
    }
  }

  // Keys, as X11 keysyms.
  const KEYS = {
    Backspace: 0xff08, Tab: 0xff09, Enter: 0xff0d, Pause: 0xff13, ScrollLock: 0xff14, Escape: 0xff1b, Home: 0xff50, ArrowLeft: 0xff51,
    ArrowUp: 0xff52, ArrowRight: 0xff53, ArrowDown: 0xff54, PageUp: 0xff55, PageDown: 0xff56, End: 0xff57, PrintScreen: 0xff61,
    Insert: 0xff63, ContextMenu: 0xff67, NumLock: 0xff7f, CapsLock: 0xffe5, AltGraph: 0xfe03, Delete: DELETE,
  };
  // The key on the left; the one on the right has the next number.
  const SIDES = { Shift: 0xffe1, Control: CONTROL, Alt: ALT, Meta: 0xffeb };
  const pressed = new Map();
  const key = (isDown, keysym) => send(4, isDown, 0, 0, ...u32(keysym));

  function keysym(event) {
    if ([...event.key].length === 1) {
      const point = event.key.codePointAt(0);
      return point < 256 ? point : 0x01000000 + point;
    }
    const side = SIDES[event.key];
    if (side) return side + (event.location === KeyboardEvent.DOM_KEY_LOCATION_RIGHT ? 1 : 0);
    const number = /^F([1-9]|1[0-2])$/.exec(event.key)?.[1];
    return number ? 0xffbd + Number(number) : KEYS[event.key];
  }
  function release() {
    for (const keysym of pressed.values()) key(0, keysym);
    pressed.clear();
  }
  canvas.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && event.shiftKey) {
      event.preventDefault();
      document.getElementById("ctrl-alt-del").focus();
      return;
    }
    const pressedKey = keysym(event);
    if (!pressedKey) return;
    event.preventDefault();
    pressed.set(event.code, pressedKey);
    key(1, pressedKey);
  });
  canvas.addEventListener("keyup", (event) => {
    const released = pressed.get(event.code);
    if (!released) return;
    event.preventDefault();
    pressed.delete(event.code);
    key(0, released);
  });
  canvas.addEventListener("blur", release);
  document.getElementById("ctrl-alt-del").addEventListener("click", () => {
    for (const keysym of [CONTROL, ALT, DELETE]) key(1, keysym);
    for (const keysym of [DELETE, ALT, CONTROL]) key(0, keysym);
  });

  function point(event, more = 0) {
    const box = canvas.getBoundingClientRect();
    const scaled = (at, length, most) => u16(Math.max(0, Math.min(most - 1, Math.floor(at * most / length))));
    const buttons = (event.buttons & 1) | (event.buttons & 4) >> 1 | (event.buttons & 2) << 1;
    send(5, buttons | more, ...scaled(event.clientX - box.left, box.width, canvas.width),
      ...scaled(event.clientY - box.top, box.height, canvas.height));
  }
  for (const kind of ["pointermove", "pointerdown", "pointerup"]) canvas.addEventListener(kind, (event) => point(event));
  canvas.addEventListener("pointerdown", (event) => canvas.setPointerCapture(event.pointerId));
  canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    point(event, event.deltaY < 0 ? 8 : 16);
    point(event);
  }, { passive: false });

  run().catch((why) => end(why.message));
})();
