"""Names of releases instead of ids, on asv's site and in its feed."""

import html
import json
import pathlib

from asv.publishing import OutputPublisher

SCRIPT = "names.js"
BEFORE = '<script language="javascript" type="text/javascript"\n            src="asv_ui.js">'


class ReleaseNames(OutputPublisher):
    """Puts our script into asv's page, and names into the feed that its regressions page offers."""

    order = 1000  # after asv's own, which write what is changed here

    @classmethod
    def publish(cls, conf, repo, benchmarks, graphs, revisions):
        names = {commit: repo.get_name_from_hash(commit) for commit in revisions}
        site = pathlib.Path(conf.html_dir)
        script = (pathlib.Path(__file__).parent / "www" / SCRIPT).read_text()
        # Inside a script, "<" could end it.
        data = json.dumps(names, sort_keys=True).replace("<", "\\u003c")
        (site / SCRIPT).write_text(script.replace("RELEASES", data, 1))
        page = site / "index.html"
        text = page.read_text()
        if BEFORE not in text:
            raise RuntimeError("asv's index.html is not the one of 0.6.6: names.py has to be looked at")
        page.write_text(text.replace(BEFORE, f'<script src="{SCRIPT}"></script>\n    {BEFORE}', 1))
        feed = site / "regressions.xml"
        if feed.exists():
            text = feed.read_text()
            for commit, name in names.items():
                text = text.replace(f"&gt;{commit[:8]}&lt;/a", f"&gt;{html.escape(html.escape(name))}&lt;/a")
            feed.write_text(text)
