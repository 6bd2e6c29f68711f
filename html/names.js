// asv's pages print the beginning of a commit's id; ours have names, such as transformers==4.38.2.
$(function () {  // once asv's own scripts have set up $.asv
    "use strict";
    var names = {"0db9814e03a4e81894682a3c30509347adb47e06": "torch==2.15.0", "2228d7a8e36dbd390badb6140234e574b63f0017": "accelerate==0.34.2", "2f4c4ae25d1dc41f76749fe7c69daae101314611": "keras==3.6.0", "304b266f457827e69e93bf1b682750829d5808df": "transformers==5.24.0", "30fa9f2e7b5be84ab2af02f56bccbdd141f241b7": "peft==0.21.2", "4fbd09d9b97bbc75cb7088c1fa6da4507c822186": "diffusers==0.42.1", "bb1a4cf1118ed3d683602902ffcc4f688a71c80c": "reference==2026-12-01", "c248c7d531ea26f878a9f47c8ad149e92350ecfd": "accelerate==1.15.0", "f4919b98e523224c91932b9a23e0a6cc207f59e7": "transformers==4.57.6"};  // id to name, filled in when the site is published
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
