"""Pages in a browser, if there is one: the document after its scripts have run, and what functions find in it."""

import json
import re
import shutil
import subprocess
from html import unescape

BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
QUIET = ["background-networking", "component-update", "sync", "gpu", "dev-shm-usage"]
FLAGS = [*(f"--disable-{it}" for it in QUIET), "--headless", "--no-sandbox", "--no-first-run"]
FLAGS += ["--force-prefers-reduced-motion", "--allow-file-access-from-files", "--virtual-time-budget=5000"]
WINDOW, PHONE = (1280, 800), (375, 812)
SIZE = "(d) => [d.documentElement.scrollWidth, d.documentElement.clientWidth, d.documentElement.scrollHeight]"


def dumped(address, profile):
    """The document as it is once scripts have run."""
    command = [BROWSER, *FLAGS, f"--user-data-dir={profile}", "--dump-dom", address]
    return subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300).stdout


def seen(report, profile, size, steps, fragment="", sandbox=""):
    """What the functions `steps` return, one after the other, given the document and the window of the report."""
    page = profile / "frame.html"
    page.write_text(f"""<!doctype html>
<iframe width="{size[0]}" height="{size[1]}" style="border: 0" {sandbox} src="{report.as_uri()}{fragment}">
</iframe>
<pre></pre>
<script>
onload = async () => {{
  const found = [], frame = document.querySelector("iframe").contentWindow;
  for (const step of [{",".join(steps)}]) {{
    found.push(await step(frame.document, frame));
    await new Promise((done) => setTimeout(done, 200));
  }}
  document.querySelector("pre").textContent = JSON.stringify(found);
}};
</script>""")
    found = re.search(r"<pre>(.*?)</pre>", dumped(page.as_uri(), profile), re.DOTALL)
    return json.loads(unescape(found[1]))
