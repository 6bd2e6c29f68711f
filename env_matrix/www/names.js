// asv's pages print the beginning of a commit's id; ours have names, such as transformers==4.38.2.
$(function () {  // once asv's own scripts have set up $.asv
    "use strict";
    var names = RELEASES;  // id to name, filled in when the site is published
    var ids = {};
    Object.keys(names).forEach(function (id) { ids[names[id]] = id; });

    $.asv.get_commit_hash = function (revision) {
        var id = $.asv.main_json.revision_to_hash[revision];
        return names[id] || id;
    };

    // In addresses a release is its id, alone or as a pair "a-b": asv reads nothing else there.
    function address(value) {
        if (ids[value]) {
            return ids[value];
        }
        var first = Object.keys(ids).find(function (name) {
            return value.indexOf(name + "-") === 0 && ids[value.slice(name.length + 1)];
        });
        return first ? ids[first] + "-" + ids[value.slice(first.length + 1)] : value;
    }

    var format = $.asv.format_hash_string;
    $.asv.format_hash_string = function (info) {
        if (info.params && info.params.commits) {
            info = $.extend(true, {}, info);
            info.params.commits = info.params.commits.map(address);
        }
        return format(info);
    };
});
